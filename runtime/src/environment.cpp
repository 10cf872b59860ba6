#include "environment.h"

#include <c10/util/Exception.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <iterator>
#include <optional>

#include "slurm.h"

namespace accelerate::detail {
namespace {

int64_t parse(const char* name, const std::string& text) {
  char* end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  TORCH_CHECK(!text.empty() && *end == '\0' && value >= 0, "[accelerate] ", name, "=", text,
              " isn't a number that a launcher would set");
  return value;
}

/// The variables that one kind of launcher sets.
struct Names {
  const char *rank, *world_size, *local_rank, *local_world_size;
};

constexpr Names kTorchrun{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Names kMpi[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
};

bool read(const Names& names, Environment& environment) {
  const auto rank = number(names.rank);
  const auto world_size = number(names.world_size);
  if (!rank || !world_size) {
    return false;
  }
  TORCH_CHECK(*rank < *world_size, "[accelerate] ", names.rank, "=", *rank, " doesn't fit ", names.world_size, "=",
              *world_size);
  environment.rank = *rank;
  environment.world_size = *world_size;
  // Without local numbers the job is taken to run on one host.
  environment.local_rank = number(names.local_rank).value_or(*rank);
  environment.local_world_size = number(names.local_world_size).value_or(*world_size);
  return true;
}

}  // namespace

std::optional<int64_t> number(const char* name) {
  const std::string text = variable(name);
  return text.empty() ? std::nullopt : std::optional(parse(name, text));
}

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

bool flag(const char* name) {
  std::string text = variable(name);
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text == "1" || text == "true" || text == "yes" || text == "on" || text == "y" || text == "t";
}

Environment read_environment() {
  Environment environment;
  const bool torchrun = read(kTorchrun, environment);
  bool mpi = false;
  for (const Names& names : kMpi) {
    mpi = mpi || (!torchrun && read(names, environment));
  }
  const std::optional<SlurmStep> slurm = torchrun ? std::nullopt : read_slurm();
  if (slurm && (!mpi || slurm->world_size == environment.world_size)) {
    // srun's own PMI tells neither local numbers nor hosts; the step does.
    const bool local_known = mpi && std::any_of(std::begin(kMpi), std::end(kMpi), [](const Names& names) {
                               return number(names.rank) && number(names.local_rank);
                             });
    environment.rank = mpi ? environment.rank : slurm->rank;
    environment.world_size = slurm->world_size;
    if (!local_known) {
      environment.local_rank = slurm->local_rank;
      environment.local_world_size = slurm->local_world_size;
    }
  }
  if (environment.alone()) {
    return Environment{};
  }
  environment.master_address = variable("MASTER_ADDR");
  if (const auto port = number("MASTER_PORT")) {
    TORCH_CHECK(*port > 0 && *port < 65536, "[accelerate] MASTER_PORT=", *port, " isn't a port");
    environment.master_port = static_cast<uint16_t>(*port);
  }
  if (slurm && slurm->world_size == environment.world_size && !environment.one_host()) {
    if (environment.master_address.empty()) {
      environment.master_address = slurm->first_host;
    }
    if (environment.master_port == 0) {
      environment.master_port = slurm->port;
    }
  }
  if ((mpi || slurm) && environment.one_host()) {
    // Neither names a meeting point. On one host all ranks have the same parent, which gives them a port.
    if (environment.master_address.empty()) {
      environment.master_address = "127.0.0.1";
    }
    if (environment.master_port == 0) {
      environment.master_port = static_cast<uint16_t>(20000 + getppid() % 20000);
    }
  }
  TORCH_CHECK(!environment.master_address.empty() && environment.master_port != 0, "[accelerate] rank ",
              environment.rank, " of ", environment.world_size,
              ": MASTER_ADDR and MASTER_PORT aren't set; export the name of rank 0's host and a free port on it");
  environment.store_is_served = variable("TORCHELASTIC_USE_AGENT_STORE") == "True";
  environment.restart = variable("TORCHELASTIC_RESTART_COUNT");
  if (const auto seconds = number("ACCELERATE_TIMEOUT")) {
    environment.timeout = std::chrono::seconds(*seconds);
  }
  return environment;
}

}  // namespace accelerate::detail
