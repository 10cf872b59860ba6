//===- InterpreterOutside.cpp - Clocks, the system's entropy --------------===//
//
// A clock or `std::random_device` gives every process another number. Where one seeds a generator, or decides what all
// ranks must do alike, the ranks agree on the main process's.
//
//===----------------------------------------------------------------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSwitch.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::StmtKind;

namespace migrate {

static bool isOutside(StringRef Name) {
  return llvm::StringSwitch<bool>(Name)
      .Cases("std::random_device::operator()", "time", "std::time", "clock", "std::clock", true)
      .Cases("std::chrono::system_clock::now", "std::chrono::steady_clock::now", true)
      .Cases("std::chrono::_V2::system_clock::now", "std::chrono::_V2::steady_clock::now", true)
      .Cases("std::chrono::_V2::high_resolution_clock::now", "std::chrono::high_resolution_clock::now", true)
      .Cases("getpid", "gettid", "std::this_thread::get_id", "torch::seed", "at::seed", true)
      .Cases("gettimeofday", "clock_gettime", "timespec_get", "std::timespec_get", "gethostname", true)
      .Cases("getrandom", "getentropy", "getppid", "std::thread::hardware_concurrency", true)
      .Cases("at::detail::getNonDeterministicRandom", "c10::detail::getNonDeterministicRandom", true)
      .Cases("__builtin_ia32_rdtsc", "__rdtsc", "_rdtsc", "__rdtscp", true)
      .Default(false);
}

/// What the file system tells: another process may have changed it since.
bool isQuery(StringRef Name) {
  return llvm::StringSwitch<bool>(Name)
      .Cases("std::filesystem::exists", "std::filesystem::is_directory", "std::filesystem::is_regular_file", true)
      .Cases("std::filesystem::is_empty", "std::filesystem::file_size", "access", "stat", true)
      .Cases("std::filesystem::last_write_time", "std::filesystem::is_symlink", true)
      .Default(false);
}

/// What there must be one of: run by several processes, all but the first would fail, or find it done.
static bool changes(StringRef Name) {
  return llvm::StringSwitch<bool>(Name)
      .Cases("std::filesystem::remove", "std::filesystem::remove_all", "std::filesystem::rename", true)
      .Cases("std::filesystem::copy", "std::filesystem::copy_file", "remove", "std::remove", "rename", true)
      .Cases("std::rename", "unlink", "rmdir", "system", "std::system", true)
      .Cases("std::filesystem::create_symlink", "std::filesystem::create_directory_symlink", "symlink", "link", true)
      .Cases("std::filesystem::create_hard_link", "std::filesystem::resize_file", "truncate", true)
      .Cases("cv::imwrite", "stbi_write_png", "stbi_write_jpg", "stbi_write_bmp", "stbi_write_tga", true)
      .Cases("vision::image::write_png", "vision::image::write_jpeg", true)
      .Cases("torch::jit::Module::save", "torch::jit::Module::_save_for_mobile", "torch::jit::ExportModule", true)
      .Default(false);
}

/// The same of making a folder, of which the caller learns whether it was there.
bool makesFolder(StringRef Name) {
  return llvm::StringSwitch<bool>(Name)
      .Cases("mkdir", "std::filesystem::create_directory", "std::filesystem::create_directories", true)
      .Default(false);
}

/// Options of an optimizer or a loader, which all ranks set alike.
bool ofOptions(const ir::Type &T) {
  StringRef Name = T.Name;
  return Name.contains("Options") && (Name.contains("torch::optim::") || Name.contains("torch::data::"));
}

bool ofLayer(const ir::Type &T) {
  StringRef Name = T.Name;
  return Name.contains("Options") && Name.contains("torch::nn::");
}

bool changesFile(StringRef Name) { return changes(Name) || makesFolder(Name); }

bool differsOrChanges(StringRef Name) { return isOutside(Name) || isQuery(Name) || changesFile(Name); }

/// What may be a path.
static bool isText(const ir::Type &T) {
  StringRef Name = T.Name;
  return T.Kind == ir::TypeKind::String || Name.starts_with("std::basic_string") || Name.starts_with("std::string") ||
         Name.contains("filesystem::path") || Name.starts_with("char");
}

/// A library's `image.write(path)`, `plot::save("loss.png")`: what is called so and is given a name of a file writes
/// it.
bool Interpreter::writesByLibrary(const ir::Expr &X) const {
  StringRef Name = X.Name;
  for (const char *Known : {"std::", "torch::", "at::", "c10::", "caffe2::", "accelerate::"})
    if (Name.starts_with(Known))
      return false;
  StringRef Called = Name.substr(Name.rfind(':') + 1);
  const bool Writes = Called.starts_with_insensitive("write") || Called.starts_with_insensitive("save") ||
                      Called.starts_with_insensitive("export");
  if (X.Kind != ExprKind::Call || !Name.contains("::") || !Writes || !P.bodies(X).empty() || P.callee(X) != None)
    return false;
  if (X.Object != None && (P.Code.type(X.Object).Kind != ir::TypeKind::Unknown || P.Code.type(X.Object).Own))
    return false;
  return llvm::any_of(X.Args, [&](ir::ExprId Arg) { return Arg != None && isText(P.Code.type(Arg)); });
}

/// Whether a loop runs over the entries of a folder.
bool Interpreter::listsFolder(ir::StmtId Loop) const {
  bool Lists = false;
  P.forEachExpr(P.Code.Stmts[Loop].Value, [&](ir::ExprId Sub) {
    Lists |= P.Code.Exprs[Sub].Name == "readdir" || StringRef(P.Code.type(Sub).Name).contains("directory_iterator");
  });
  return Lists;
}

/// `for (auto& entry : directory_iterator(folder)) remove(entry);`: a rank that comes later finds fewer entries, and
/// the others would wait for it. True if that is so: the main process runs the whole loop, if all it does is that.
bool Interpreter::changesFolder(ir::ExprId E, const ir::Expr &X) {
  static const char *const Away[] = {"remove", "remove_all", "rename", "unlink", "rmdir"};
  if (StringRef Name = X.Name; !llvm::is_contained(Away, Name.substr(Name.rfind(':') + 1)))
    return false;
  auto Folder = llvm::find_if(Loops, [&](const Loop &L) { return listsFolder(L.Statement); });
  if (Folder == Loops.end() || Divergent > 0)
    return false;
  const ir::StmtId Whole = Folder->Statement;
  const ir::Range &Where = P.Code.Stmts[Whole].Where;
  bool Alone = Where.Editable && Where.contains(P.Code.Exprs[E].Where) && !sets(Whole);
  P.forEachExprIn(Whole, [&](ir::ExprId Sub) { // `++removed`
    const ir::Expr &Step = P.Code.Exprs[Sub];
    if (Step.Kind == ExprKind::Unary && (Step.Name == "++" || Step.Name == "--"))
      if (std::optional<Location> L = lvalue(Step.Args[0]))
        Alone &= Where.contains(P.Code.Vars[L->Root].Decl);
  });
  P.forEachStmt(Whole, [&](ir::StmtId Child) {
    const StmtKind Kind = P.Code.Stmts[Child].Kind;
    Alone &= Kind != StmtKind::Return && Kind != StmtKind::Goto;
  });
  if (!Alone)
    note(
        "divergent-training", E, Value(),
        "changes a folder in a loop over it, of which each rank may find other entries: let the main process run that "
        "loop, `if (accelerator.is_main_process())`, and the others wait behind it, `accelerator.wait_for_everyone()`");
  else if (Recording)
    Out.OnceLoops.insert(Whole);
  return true;
}

/// What is written to `To`, or to what it is the address of, is each process's own.
void Interpreter::setOutside(ir::ExprId To) {
  if (To == None)
    return;
  const ir::Expr &X = P.Code.Exprs[P.unconverted(To)];
  if (std::optional<Location> L = lvalue(X.Kind == ExprKind::Unary && X.Name == "&" ? X.Args[0] : P.unconverted(To)))
    Current[*L].Equal = Strength::Outside;
}

void Interpreter::changesFiles(ir::ExprId E, const ir::Expr &X) {
  const bool Library = writesByLibrary(X);
  const bool Folder = makesFolder(X.Name);
  const bool Dated = Folder && llvm::any_of(X.Args, [&](ir::ExprId Arg) { // each rank's clock gives it another name
                       return Arg != None && eval(Arg).outside();
                     });
  if (!Library && !changes(X.Name) && (!Folder || (Statements.count(E) && !Dated)))
    return;
  if (Library) {
    for (ir::ExprId Arg : X.Args)
      if (Arg != None)
        demandReplicated(Arg, eval(Arg), "written to a file");
    if (X.Object != None)
      if (Value Of = eval(X.Object); !Of.replicated() && Of.Kind != Placement::Own)
        note("rank-local-use", X.Object, Of, "is written to a file, but is " + inWords(Of));
  }
  bool Range = X.Name == "std::remove" && X.Args.size() > 1; // of a list's items
  bool Stream = llvm::any_of(X.Args, [&](ir::ExprId Arg) {   // `scripted.save(bytes)` is no file
    return Arg != None && StringRef(P.Code.type(Arg).Name).contains("stream");
  });
  if (Range || Stream || !P.bodies(X).empty())
    return;
  notWhole("its loop changes files", E);
  const ir::Type &Gives = P.Code.type(E);
  if (Library && Gives.Kind != ir::TypeKind::Void && !Gives.number()) { // no result that ranks can send each other
    note("one-process", E, Value(),
         "writes a file, and each rank the same one: let the main process alone do so, "
         "`if (accelerator.is_main_process())`");
    return;
  }
  ++Meetings;
  for (size_t I = 0; I < X.Args.size() && I < 32; ++I) // `rename(from, to, error)`: the main process's alone is told
    if (X.Writable >> I & 1)
      setOutside(X.Args[I]);
  if (changesFolder(E, X))
    return;
  if (OutsideChoices > 0) { // another process may have changed what the choice looked at
    FilesDecide = Restart = true;
    return;
  }
  if (Recording && Divergent == 0)
    Out.Once.insert(E);
}

static bool isEngine(StringRef Type) {
  return Type.contains("mersenne_twister_engine") || Type.contains("linear_congruential_engine") ||
         Type.contains("subtract_with_carry_engine") || Type.contains("discard_block_engine") ||
         Type.contains("independent_bits_engine") || Type.contains("shuffle_order_engine");
}

/// Whether there is a `++n`, `--n`, `n += 1` in it.
bool Interpreter::countsUp(ir::ExprId E) const {
  bool Found = false;
  P.forEachExpr(E, [&](ir::ExprId Sub) {
    const ir::Expr &X = P.Code.Exprs[Sub];
    Found |= X.Kind == ExprKind::Assign || (X.Kind == ExprKind::Unary && (X.Name == "++" || X.Name == "--"));
  });
  return Found;
}

/// Has the ranks agree on what the main process has.
void Interpreter::agree(ir::ExprId E, const Value &V) {
  if (!V.outside() || !V.replicated() || !Recording)
    return;
  const ir::Expr &Choice = P.Code.Exprs[P.unconverted(E)];
  if (Choice.Kind == ExprKind::Binary && (Choice.Name == "&&" || Choice.Name == "||") && countsUp(E)) {
    for (ir::ExprId Side : Choice.Args) // `!stop && ++epoch < n` is to count on all ranks, or on none
      agree(Side, Last[Side]);
    return;
  }
  bool Flag = false; // maybe atomic, or volatile
  P.forEachExpr(E, [&](ir::ExprId Sub) { Flag |= setBeside().count(P.Code.Exprs[Sub].Var) != 0; });
  // `if (std::ifstream("stop"))`, `if (file)`: whether it is open
  const ir::Expr &Asked = P.Code.Exprs[P.unconverted(E)];
  StringRef Type = P.Code.type(E).Name;
  Flag |= (Type == "std::error_code" && Asked.Kind == ExprKind::Ref) || // `if (error)`
          (Type.starts_with("std::basic_") && Type.contains("fstream<") && Asked.Where.Editable) ||
          (Asked.Kind == ExprKind::Ref && (Type == "FILE *" || Type == "_IO_FILE *") &&
           !P.Code.Vars[Asked.Var].Decl.contains(Asked.Where)); // `if (FILE* file = ..)` has no place for it
  // Before `main`, ranks meet in an accelerator without a name, unless one that is given options has to be the first.
  const bool Ahead = Globals && llvm::none_of(P.Code.Exprs, [&](const ir::Expr &X) {
                       return X.Kind == ExprKind::Construct && !X.Args.empty() && X.Type != None &&
                              P.Code.Types[X.Type].Kind == ir::TypeKind::Accelerator;
                     });
  if (Threads > 0)
    note("outside-entropy", E, V, "differs between processes in a thread, where ranks can't meet");
  else if (ofLoaders(Frames.back().Function))
    note("outside-entropy", E, V, "differs between processes in what loaders call, too, where ranks can't meet");
  else if ((Flag || P.Code.type(E).number()) && (Divergent == 0 || Ahead))
    Out.Coercions.try_emplace(E, Flag ? "flag" : "broadcast");
  else
    note("outside-entropy", E, V, "differs between processes");
}

/// `std::cin`
bool Interpreter::isInput(ir::ExprId E) const {
  E = P.unconverted(E);
  const ir::Expr &X = P.Code.Exprs[E];
  return X.Kind == ExprKind::Ref && X.Var != None && P.Code.Vars[X.Var].Name == "cin" &&
         StringRef(P.Code.type(E).Name).contains("istream");
}

void Interpreter::readsInput(ir::ExprId E) {
  note("one-process", E, Value(),
       "reads standard input, which only the main process has: give the others what was read, "
       "`value = accelerator.broadcast(value)`");
}

/// `TensorBoardLogger logger(path)`, `spdlog::basic_logger_mt(name, path)`: a library's class of whose name one expects
/// that it writes to what it's given the name of.
bool Interpreter::opensLog(ir::ExprId E, const ir::Expr &X) const {
  StringRef Type = P.Code.type(E).Name;
  if ((X.Kind != ExprKind::Construct && X.Kind != ExprKind::Call) || X.Callee.empty() || P.callee(X) != None ||
      (X.Kind == ExprKind::Call && X.Object != None))
    return false;
  for (const char *Holder : {"std::shared_ptr<", "std::unique_ptr<", "std::optional<"})
    Type.consume_front(Holder);
  Type = Type.take_until([](char C) { return C == '<' || C == '>' || C == ','; });
  for (const char *Known : {"std::", "torch::", "at::", "c10::", "caffe2::", "accelerate::"})
    if (Type.starts_with(Known))
      return false;
  Type = Type.substr(Type.rfind(':') + 1);
  if (!Type.ends_with_insensitive("logger") && !Type.ends_with_insensitive("writer") &&
      !Type.ends_with_insensitive("recorder"))
    return false;
  bool Named = false, Alone = false;
  for (ir::ExprId Arg : X.Args)
    if (Arg != None) {
      Named |= isText(P.Code.type(Arg));
      P.forEachExpr(Arg, [&](ir::ExprId Sub) {
        Alone |= P.Code.Exprs[Sub].Name == "accelerate::Accelerator::main_process_file";
      });
    }
  return Named && !Alone;
}

/// Standard input, the terminal and signals: what one process has or sees.
void Interpreter::ofOneProcess(ir::ExprId E, const ir::Expr &X) {
  StringRef Name = StringRef(X.Name).substr(StringRef(X.Name).rfind(':') + 1);
  // `std::cin >> x`, `std::getline(std::cin, line)`, `load(std::cin)`, `std::istream_iterator<int>(std::cin)`
  bool Reads = Name == ">>" || Name == "operator>>" || Name == "getline" || Name == "read" || Name == "get";
  if ((Reads && X.Object != None && isInput(X.Object)) ||
      llvm::any_of(X.Args, [&](ir::ExprId Arg) { return Arg != None && isInput(Arg); }))
    readsInput(E);
  if (!P.bodies(X).empty()) // the project's own, whatever it is called
    return;
  bool Keys = X.Object == None && (Name == "getchar" || Name == "getch" || X.Name == "cv::waitKey" ||
                                   X.Name == "cv::pollKey" || Name == "scanf");
  if (Keys && !Statements.count(E))
    note("one-process", E, Value(),
         "asks for a key, which one process gets: let the ranks agree on it, `key = accelerator.broadcast(key)`");
  // `open(path, O_WRONLY | O_CREAT, 0644)`
  const std::optional<int64_t> Flags = X.Name == "open" && X.Args.size() == 2 ? integer(X.Args[1]) : std::nullopt;
  if (X.Object == None && X.Name == "open" && (X.Args.size() == 3 || (Flags && (*Flags & 3) != 0)) && ByRank == 0)
    note("one-process", E, Value(),
         "opens the same for each rank, and all of them write to it: give it "
         "`accelerator.main_process_file(path).c_str()`");
  bool Pipe = Name == "popen" || Name == "_popen" || Name == "freopen";
  StringRef Mode = Pipe && X.Args.size() > 1 ? StringRef(P.Code.Exprs[P.unconverted(X.Args[1])].Name) : "";
  if (X.Object == None && (Mode.contains('w') || Mode.contains('a')))
    note("one-process", E, Value(),
         "opens the same for each rank, and all of them write to it: let the main process alone do so, "
         "`if (accelerator.is_main_process())`");
  if (opensLog(E, X) && ByRank == 0)
    note("one-process", E, Value(),
         "opens on each rank what it will write to: give it `accelerator.main_process_file(path)` if that is the path "
         "of a file, else let the main process alone make it, `if (accelerator.is_main_process())`");
  if (X.Object == None && (Name == "isatty" || Name == "ioctl"))
    note("one-process", E, Value(),
         "asks for the terminal, which a launcher's ranks don't have: don't let the training depend on it");
  if ((Name == "signal" || Name == "sigaction") && X.Object == None && X.Args.size() > 1 && !setsFlag(X.Args[1]))
    note("one-process", E, Value(),
         "handles a signal, which reaches each rank at another step: let them agree on it between two steps, "
         "`accelerator.check_trigger()`");
}

/// What a path is made of, at a file that the ranks write or read together: the main process's name for it.
void Interpreter::agreeOnPath(ir::ExprId Path) {
  const Value V = eval(Path);
  StringRef Type = P.Code.type(Path).Name;
  if (!V.outside() || !V.replicated() || !Recording || Divergent > 0 || !Type.starts_with("std::") ||
      !Type.contains("string"))
    return;
  Out.Coercions.try_emplace(Path, "broadcast");
}

/// A stream or buffer that what comes from outside is written to.
void Interpreter::writesOutside(const ir::Expr &X) {
  StringRef Name = X.Name;
  ir::ExprId To = None;
  if (Name.ends_with("operator<<") || Name == "<<")
    for (To = X.Object != None ? X.Object : X.Args.empty() ? None : X.Args[0]; To != None;) {
      const ir::Expr &Stream = P.Code.Exprs[P.unconverted(To)];
      if (Stream.Kind != ExprKind::Call && Stream.Kind != ExprKind::Binary)
        break;
      To = Stream.Object != None ? Stream.Object : Stream.Args.empty() ? None : Stream.Args[0];
    }
  else if (Name.ends_with("strftime") || Name.ends_with("printf"))
    To = X.Args.empty() ? None : X.Args[0];
  if (To == None)
    return;
  const ir::Expr &Stream = P.Code.Exprs[P.unconverted(To)];
  if (P.Code.type(P.unconverted(To)).Kind == ir::TypeKind::Stream) { // they are no values: all that is read of it later
    if (Stream.Kind == ExprKind::Ref && StringRef(P.Code.typeOf(Stream.Var).Name).contains("stringstream"))
      OutsideStreams.insert(Stream.Var);
  } else {
    setOutside(To);
  }
}

/// What is read from a stream or file of the system's entropy, `in.read(reinterpret_cast<char*>(&seed), sizeof seed)`.
void Interpreter::readsOutside(const ir::Expr &X) {
  StringRef Name = X.Name.empty() ? "" : StringRef(X.Name).substr(StringRef(X.Name).rfind(':') + 1);
  bool Into = X.Kind == ExprKind::Call && llvm::is_contained({"read", "get", "getline", "fread", "fgets"}, Name);
  bool Shifts = (Name == ">>" || Name == "operator>>") && !X.Args.empty();
  if (!Into && !Shifts)
    return;
  for (ir::ExprId Arg : Shifts ? llvm::ArrayRef(X.Args).take_back(1) : llvm::ArrayRef(X.Args))
    setOutside(Arg);
}

/// Whether a generator is one that data sets or transforms draw from, too, once they have been read from: each rank has
/// drawn for its own rows, so that what it gives next is another number on each.
bool Interpreter::drawnByReaders(ir::ExprId E, const ir::Expr &X) {
  const bool Library = drawsFromLibrary(X.Name);
  const bool Named = (X.Kind == ExprKind::Ref || X.Kind == ExprKind::Field) && X.Var != None &&
                     (P.Code.Vars[X.Var].Global || P.Code.Vars[X.Var].Field) && isEngine(P.Code.type(E).Name);
  return Read && (Library || Named) && namedByLoaders().count(Library ? None : X.Var) != 0 &&
         !ofLoaders(Frames.back().Function);
}

/// Follows what comes from outside through expressions, to the seeds of generators.
/// `items.begin() + n`, `std::next(first, n)`, `items.resize(n)`: where in a list something is, and how long that is.
static bool tellsPlace(const Program &P, ir::ExprId E) {
  const ir::Expr &X = P.Code.Exprs[E];
  const ir::Type &T = P.Code.type(E);
  if (X.Kind == ExprKind::Binary)
    return (X.Name == "+" || X.Name == "-") &&
           (StringRef(T.Name).ends_with("*") || StringRef(T.Name).contains("iterator"));
  const StringRef Name = X.Name;
  return X.Kind == ExprKind::Call && Name.starts_with("std::") &&
         (Name == "std::next" || Name == "std::prev" || Name == "std::advance" || Name.ends_with("::resize"));
}

void Interpreter::fromOutside(ir::ExprId E, const ir::Expr &X, Value &V) {
  StringRef Name = X.Name, Type = P.Code.type(E).Name;
  // `reinterpret_cast<uintptr_t>(&object)`: where the system has put it
  const bool Address = X.Kind == ExprKind::Cast && X.Args.size() == 1 && X.Args[0] != None && P.Code.type(E).number() &&
                       StringRef(P.Code.type(X.Args[0]).Name).ends_with("*");
  if (Address || drawnByReaders(E, X)) {
    V.Equal = Strength::Outside;
    return;
  }
  if (X.Kind == ExprKind::Call && (isOutside(X.Name) || isQuery(X.Name))) {
    V.Equal = Strength::Outside;
    for (ir::ExprId Arg : X.Args) // `gettimeofday(&now, nullptr)`, `gethostname(name, sizeof name)`
      if (isOutside(Name))
        setOutside(Arg);
    return;
  }
  if (X.Kind == ExprKind::Call || X.Kind == ExprKind::Construct || X.Kind == ExprKind::Binary)
    ofOneProcess(E, X);
  const bool Reads = (Name == "popen" || Name == "_popen") && X.Args.size() > 1 &&
                     StringRef(P.Code.Exprs[P.unconverted(X.Args[1])].Name).contains('r');
  if (Reads || polls(E)) {
    V.Equal = Strength::Outside;
    return;
  }
  if (X.Kind == ExprKind::Literal && (Name.contains("/dev/urandom") || Name.contains("/dev/random")))
    V.Equal = Strength::Outside;
  bool Stream = X.Kind == ExprKind::Ref && P.Code.type(E).Kind == ir::TypeKind::FileStream;
  auto Opened = Stream ? Current.find(Location{X.Var, {}}) : Current.end();
  bool Beside = (X.Kind == ExprKind::Ref || X.Kind == ExprKind::Field) && Threads == 0 &&
                (setBeside().count(X.Var) != 0 || raced().count(X.Var) != 0);
  if (Beside || (X.Kind == ExprKind::Ref && OutsideStreams.count(X.Var)) ||
      (Opened != Current.end() && Opened->second.outside())) {
    V.Equal = Strength::Outside;
    return;
  }
  if ((X.Kind == ExprKind::Call || X.Kind == ExprKind::Construct) &&
      (P.callee(X) != None || Name.starts_with("accelerate::")))
    return; // the body tells
  bool Makes = X.Kind == ExprKind::Construct || Name == "std::make_unique" || Name == "std::make_shared" ||
               Name.ends_with("::emplace") || Name.ends_with("::reset");
  StringRef Made = X.Kind == ExprKind::Call && X.Object != None ? StringRef(P.Code.type(X.Object).Name) : Type;
  bool Seeds = (Makes && isEngine(Made)) || Name == "at::detail::createCPUGenerator" ||
               Name.starts_with("at::make_generator") || Name == "torch::manual_seed" || Name == "at::manual_seed" ||
               Name == "srand" || Name == "std::srand" || Name == "torch::cuda::manual_seed" ||
               Name == "torch::cuda::manual_seed_all" || Name.ends_with("::set_current_seed") ||
               (X.Object != None && Name.ends_with("::seed") && isEngine(P.Code.type(X.Object).Name));
  if (Name == "at::Generator::seed" || Name == "c10::GeneratorImpl::seed")
    note("outside-entropy", E, V, "seeds a generator from the system's entropy");
  if (Name == "std::shuffle" || Name == "std::sample") {
    ir::ExprId Engine = X.Args.empty() ? None : X.Args.back();
    if (Engine != None && StringRef(P.Code.type(Engine).Name).contains("random_device"))
      note("outside-entropy", E, V, "takes its order from the system's entropy");
    else if (Engine != None && Last[Engine].outside())
      note("outside-entropy", E, V, "takes its order from a generator that each rank has drawn from for its own rows");
  }
  // `std::generate(bits.begin(), bits.end(), std::ref(device))`
  if (StringRef(X.Name).starts_with("std::generate") && X.Args.size() > 1)
    for (ir::ExprId Arg : X.Args)
      if (StringRef(P.Code.type(Arg).Name).contains("std::random_device"))
        if (const ir::Expr &Begin = P.Code.Exprs[P.unconverted(X.Args[0])]; Begin.Object != None)
          setOutside(Begin.Object);
  // `uniform(device)`: a draw of a distribution, straight from the system's entropy
  bool Any = X.Object != None && Last[X.Object].outside();
  for (ir::ExprId Arg : X.Args)
    Any |= X.Kind == ExprKind::Call && Arg != None && P.Code.type(E).number() &&
           StringRef(P.Code.type(Arg).Name) == "std::random_device";
  // `std::seed_seq{device(), device()}`: each of them
  bool Sequence = false;
  std::vector<ir::ExprId> Given = X.Args;
  if (X.Kind == ExprKind::Construct && Made == "std::seed_seq" && Given.size() == 1 && Given[0] != None)
    if (const ir::Expr &Items = P.Code.Exprs[P.unconverted(Given[0])]; Items.Kind == ExprKind::List)
      Sequence = true, Given = Items.Args;
  for (ir::ExprId Arg : Given) {
    if (Arg == None || !Last[Arg].outside())
      continue;
    if (X.Kind == ExprKind::Call && X.Object != None && ofOptions(P.Code.type(X.Object)))
      agree(Arg, Last[Arg]);
    else if ((Seeds && Arg != E && !isEngine(P.Code.type(Arg).Name)) || Sequence)
      agree(Arg, Last[Arg]);
    else if (P.Code.type(Arg).number() && tellsPlace(P, E))
      agree(Arg, Last[Arg]);
    else
      Any = true;
  }
  if (Any)
    writesOutside(X), readsOutside(X);
  const bool Loss = P.Code.type(E).Kind == ir::TypeKind::Tensor &&
                    (V.Kind == Placement::Mean || V.Kind == Placement::Partial || V.Kind == Placement::Sharded);
  if (Any && (V.replicated() || Loss) && X.Kind != ExprKind::Assign)
    V.Equal = Strength::Outside;
}

} // namespace migrate
