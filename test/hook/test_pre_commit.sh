#!/usr/bin/env bash
# test_pre_commit.sh TOOL PRE_COMMIT SOURCE_DIR WORK_DIR
#
# The hooks of .pre-commit-hooks.yaml with the real pre-commit, in a real git repository: the check fails with the diff
# and changes nothing; the fix edits and fails once; then both pass.
set -euo pipefail

tool=$(realpath "$1") pre_commit=$(realpath -s "$2") source_dir=$(realpath "$3")
mkdir -p "$4"
work=$(realpath "$4")

# Nothing of the user's: no settings of git, no hooks that are installed elsewhere, a cache of our own.
rm -rf "${work:?}"/*
export PRE_COMMIT_HOME=$work/cache GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=test GIT_AUTHOR_EMAIL=test@example.com GIT_COMMITTER_NAME=test GIT_COMMITTER_EMAIL=test@example.com
unset GIT_DIR GIT_INDEX_FILE GIT_WORK_TREE
PATH=$(dirname "$tool"):$PATH

fail() {
  echo "FAIL: $1" >&2
  [ ! -f "$work/output" ] || sed 's/^/  | /' "$work/output" >&2
  exit 1
}
ok() { echo "ok: $1"; }

# run CODE HOOK...: pre-commit on all files must exit with CODE.
run() {
  local want=$1 code=0
  shift
  "$pre_commit" run --all-files --verbose "$@" >"$work/output" 2>&1 || code=$?
  [ "$code" = "$want" ] || fail "pre-commit run $* exits with $code, expected $want"
}
says() { grep -q -e "$1" "$work/output" || fail "the output says no '$1'"; }
quiet_about() { ! grep -q -e "$1" "$work/output" || fail "the output says '$1'"; }

# The hooks' repository: what pre-commit needs of it is its list of hooks.
git init -q "$work/hooks"
cp "$source_dir/.pre-commit-hooks.yaml" "$work/hooks"
git -C "$work/hooks" add . && git -C "$work/hooks" commit -q -m "Hooks"
revision=$(git -C "$work/hooks" rev-parse HEAD)

# project NAME: a repository with main.cpp from standard input, configured in build/, which git doesn't track.
project() {
  git init -q "$work/$1"
  cd "$work/$1"
  cat >main.cpp
  echo /build/ >.gitignore
  cat >.pre-commit-config.yaml <<CONFIG
repos:
  - repo: $work/hooks
    rev: $revision
    hooks:
      - id: accelerate-migrate
      - id: accelerate-migrate-fix
        stages: [manual]
CONFIG
  cat >CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.18)
project(example CXX)
find_package(Torch REQUIRED)
add_executable(train main.cpp)
target_link_libraries(train ${TORCH_LIBRARIES})
CMAKE
  mkdir build
  cat >build/compile_commands.json <<JSON
[{"directory": "$PWD/build", "file": "$PWD/main.cpp", "output": "CMakeFiles/train.dir/main.cpp.o",
  "command": "c++ -I$source_dir/test/lit/Inputs/torch -std=c++17 -o CMakeFiles/train.dir/main.cpp.o -c $PWD/main.cpp"}]
JSON
  git add . && git commit -q -m "Start"
}

project training <<'CPP'
#include <torch/torch.h>

int main() {
  torch::nn::Linear model(784, 10);
  auto loader = torch::data::make_data_loader(
      torch::data::datasets::MNIST("data").map(torch::data::transforms::Stack<>()), 64);
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  for (auto& batch : *loader) {
    optimizer.zero_grad();
    torch::nll_loss(model(batch.data), batch.target).backward();
    optimizer.step();
  }
}
CPP

run 1 accelerate-migrate
says '^accelerate-migrate (check).*Failed$'
says '^- exit code: 1$'
says '^-    torch::nll_loss(model(batch.data), batch.target).backward();$'
says '^+    accelerator.backward(torch::nll_loss(model(batch.data), batch.target));$'
says 'train: migrated$'
[ -z "$(git status --porcelain)" ] || fail "the check changed files: $(git status --porcelain)"
ok "the check fails with the diff and changes nothing"

# The same through git: a commit is stopped.
"$pre_commit" install >"$work/output" 2>&1 || fail "pre-commit install"
sed -i 's/784, 10/784, 20/' main.cpp
! git commit -q -a -m "Change" >"$work/output" 2>&1 || fail "the commit wasn't stopped"
says '^accelerate-migrate (check).*Failed$'
git checkout -q main.cpp
ok "a commit of training code that isn't migrated is stopped"

run 1 --hook-stage manual accelerate-migrate-fix
says '^accelerate-migrate (fix).*Failed$'
says '^- files were modified by this hook$'
[ "$(git status --porcelain)" = " M CMakeLists.txt
 M main.cpp" ] || fail "the fix changed other files: $(git status --porcelain)"
grep -q '^    accelerator.backward(torch::nll_loss(model(batch.data), batch.target));$' main.cpp || fail "main.cpp isn't migrated"
grep -q '^find_package(Accelerate REQUIRED)$' CMakeLists.txt || fail "CMakeLists.txt isn't migrated"
ok "the fix edits, and fails once"

git add .
run 0 --hook-stage manual accelerate-migrate-fix
says '^accelerate-migrate (fix).*Passed$'
git diff --quiet || fail "the second run changed files"
run 0 accelerate-migrate
says '^accelerate-migrate (check).*Passed$'
git commit -q -m "Migrate" >"$work/output" 2>&1 || fail "the migrated program can't be committed"
ok "the second run passes, and the commit goes through"

project coupled <<'CPP'
#include <torch/torch.h>

int main() {
  torch::nn::Linear model(784, 10);
  auto loader = torch::data::make_data_loader(
      torch::data::datasets::MNIST("data").map(torch::data::transforms::Stack<>()), 64);
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  for (auto& batch : *loader) {
    auto x = batch.data.flatten(1);
    model(torch::mm(torch::mm(x, x.t()), x)).mean().backward();
    optimizer.step();
  }
}
CPP
run 1 --hook-stage manual accelerate-migrate-fix
says 'main.cpp:10:.*refusal: .*AM0705 coupled-loss'
quiet_about 'files were modified'
git diff --quiet || fail "a refused program was changed"
ok "a finding fails, and a refused program stays"

project tools <<'CPP'
#include <cstdio>

int main() { std::printf("no training\n"); }
CPP
run 0 accelerate-migrate
run 0 --hook-stage manual accelerate-migrate-fix
[ -z "$(git status --porcelain)" ] || fail "files changed: $(git status --porcelain)"
ok "a repository without training code passes"

rm -r build
run 1 accelerate-migrate
says '^- exit code: 2$'
says 'no compile database here or in build\*/; make one with `cmake'
ok "without a compile database the hook says how to make one"
