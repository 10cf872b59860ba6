//===- Migrator.cpp -------------------------------------------------------===//
#include "Migrator.h"
#include "edit/Format.h"
#include "infer/Findings.h"
#include "infer/Structure.h"
#include "project/CMakeEdit.h"
#include "report/Dump.h"
#include "units/Prefilter.h"
#include "clang/Lex/Lexer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;

namespace migrate {

/// Whether a program trains: by `backward`, or by what it takes of its parameters' gradients, which an optimizer or its
/// own code steps with. What else asks for gradients only looks at them.
static bool trains(const ir::Unit &Code, const Findings &F) {
  if (!Code.Distributed.empty() || any_of(Code.Exprs, isBackward))
    return true;
  auto Steps = [&](const ir::Expr &E) {
    StringRef Name = E.Name;
    if (E.Kind != ir::ExprKind::Call || E.Object == ir::None)
      return E.Kind == ir::ExprKind::Construct && Name.contains("NoGradGuard");
    return (Name.ends_with("::step") && Code.type(E.Object).Kind == ir::TypeKind::Optimizer) ||
           Name == "at::Tensor::data" || Name == "at::Tensor::set_data" || Name == "at::TensorBase::variable_data";
  };
  return any_of(F.Notes, [](const auto &Note) { return Note.first.first == "unsupported-backward"; }) &&
         any_of(Code.Exprs, Steps);
}

const std::string &Migrator::text(const std::string &Path, const Overlay &Edited) {
  if (auto It = Edited.find(Path); It != Edited.end())
    return It->second;
  auto [It, New] = Disk.try_emplace(Path);
  if (New)
    if (auto Buffer = MemoryBuffer::getFile(Path, /*IsText=*/false, /*RequiresNullTerminator=*/false))
      It->second = (*Buffer)->getBuffer().str();
  return It->second;
}

const InForce &Migrator::inForce(const Program &P) const {
  ir::Range Main = P.Main == ir::None ? ir::Range() : P.Code.Functions[P.Main].Where;
  if (Main.valid())
    return Configured.of(P.Code.Files[Main.File].Path);
  return Configured.of(P.Sources.empty() ? "" : P.Sources.front());
}

/// Links the units into programs, and applies the rules to each.
std::vector<Migrator::Plan> Migrator::analyse(std::vector<ir::Unit> Read, const Overlay &Edited) {
  std::vector<Plan> Plans;
  FileTexts Texts = [&](const std::string &Path) -> const std::string & { return text(Path, Edited); };
  std::vector<ir::Unit> Unused;
  for (Program &P : link(std::move(Read), Tree, Unused)) {
    const InForce &Here = inForce(P);
    P.Taught = Here.Taught;
    Roles R(P);
    Findings F = infer(P, R, Here.Table);
    auto Slice = [&](const ir::Range &Where) {
      return Where.valid() ? Texts(P.Code.Files[Where.File].Path).substr(Where.Begin, Where.End - Where.Begin) : "";
    };
    const bool Trains = trains(P.Code, F);
    const Facts Known = Trains ? deriveFacts(P, R, F, Slice) : Facts();
    if (Edited.empty() && O.Dump == "roles")
      dumpRoles(P, R, F, Known, Here.Rules, Tree, Out);
    if (Edited.empty() && O.Dump == "placements")
      dumpPlacements(P, F, Tree, Texts, Out);
    Plan &New = Plans.emplace_back();
    New.Reached = F.Reached;
    New.Trains = Trains;
    if (Trains) {
      New.M = applyRules(P, Known, Here.Rules, Texts);
      if (!F.Trains && !F.TooLarge.valid()) // what trains in it isn't run: it only tells
        New.M.Edits.clear();
      if (!P.Code.Distributed.empty())
        refuseDistributed(P, New.M);
      if (!New.M.Edits.empty() && !Tree.BuildDir.empty())
        for (const std::string &Target : targets(P, New.M))
          linkRuntime(Tree, Target, Here.Rules, Texts, New.M);
    }
    New.P = std::move(P);
  }
  if (Edited.empty())
    leftOver(Unused, Plans);
  return Plans;
}

/// The program's own target, those of libraries whose sources are edited, and all that include an edited header: it
/// asks for the runtime's now.
std::vector<std::string> Migrator::targets(const Program &P, const Migration &M) {
  std::vector<std::string> Names;
  for (const UnitCommand &Unit : Tree.Units) {
    bool Edited = any_of(M.Edits, [&](const Edit &E) { return E.Path == Unit.Source; });
    bool Main = is_contained(P.Sources, Unit.Source) && Unit.Target == P.Name;
    if ((Main || (Edited && is_contained(P.Sources, Unit.Source))) && !is_contained(Names, Unit.Target))
      Names.push_back(Unit.Target);
  }
  if (!Including)
    Including = includingTargets(Tree);
  for (const Edit &E : M.Edits)
    if (auto Found = Including->find(E.Path); Found != Including->end())
      for (const std::string &Target : Found->second)
        if (!is_contained(Names, Target))
          Names.push_back(Target);
  return Names;
}

/// The program shares its work out by itself; then that is all there is to say about it.
void Migrator::refuseDistributed(const Program &P, Migration &M) const {
  M.Findings.clear();
  M.Edits.clear();
  for (const Rule *R : inForce(P).Rules.byFact("distributed-already")) {
    Finding X;
    X.Code = R->Code;
    X.Name = R->Name;
    X.Level = R->Level;
    auto [Name, Where] = StringRef(P.Code.Distributed.front()).split(" at ");
    X.Message = R->Message + ": `" + Name.str() + "`";
    auto [Path, Line] = Where.rsplit(':');
    X.Path = Path.str();
    Line.getAsInteger(10, X.Line);
    X.Column = 1;
    M.Findings.push_back(std::move(X));
  }
}

void Migrator::reportErrors(const std::vector<ir::Unit> &Read) {
  for (const ir::Unit &U : Read) {
    if (U.Errors.empty())
      continue;
    for (const ir::Problem &E : U.Errors)
      Errors[{U.Source, U.Target}].insert(E.Message);
    for (const ir::Problem &E : ArrayRef(U.Errors).take_front(5)) {
      Err << Tree.display(E.Path.empty() ? U.Source : E.Path);
      if (E.Line)
        Err << ":" << E.Line << ":" << E.Column;
      Err << ": error: " << E.Message << "\n";
    }
    Err << "accelerate-migrate: error: '" << Tree.display(U.Source) << "' doesn't parse (" << U.Errors.size()
        << (U.Errors.size() == 1 ? " error" : " errors") << "); build it first, then migrate it\n";
  }
}

/// Training code that no `main` in sight runs can't be followed; it must not be passed over in silence. A source that a
/// program's includes is in that one.
void Migrator::leftOver(const std::vector<ir::Unit> &Unused, const std::vector<Plan> &Plans) {
  std::set<std::pair<StringRef, uint32_t>> Included;
  if (!Unused.empty())
    for (const Plan &Of : Plans)
      for (const ir::Expr &E : Of.P.Code.Exprs)
        if (isBackward(E) && E.Where.valid())
          Included.insert({Of.P.Code.Files[E.Where.File].Path, E.Where.Begin});
  for (const ir::Unit &U : Unused)
    for (const ir::Expr &E : U.Exprs) {
      if (!isBackward(E) || !E.Where.valid() || Included.count({U.Files[E.Where.File].Path, E.Where.Begin}))
        continue;
      for (const Rule *R : Configured.of(U.Source).Rules.byFact("no-program")) {
        if (silences(R, U.Files[E.Where.File].Path, E.Where.Line, R->Code, R->Name))
          continue;
        Finding X;
        X.Code = R->Code;
        X.Name = R->Name;
        X.Level = R->Level;
        X.Message = R->Message;
        X.Path = U.Files[E.Where.File].Path;
        X.Line = E.Where.Line;
        X.Column = E.Where.Column;
        Final.Findings.push_back(std::move(X));
      }
      break;
    }
}

/// A call of `backward` in a CUDA source is training that isn't seen; a function of that name is some kernel's.
static uint32_t trainingLine(StringRef Text) {
  clang::LangOptions Options;
  Options.CPlusPlus = true;
  SmallString<0> Copy(Text); // the lexer wants a null behind the last byte
  clang::Lexer Lex(clang::SourceLocation::getFromRawEncoding(1), Options, Copy.c_str(), Copy.c_str(),
                   Copy.c_str() + Copy.size());
  unsigned Matched = 0; // of `.` `backward` `(`
  uint32_t At = 0;
  clang::Token T;
  for (Lex.LexFromRawLexer(T); T.isNot(clang::tok::eof); Lex.LexFromRawLexer(T)) {
    if (Matched == 2 && T.is(clang::tok::l_paren))
      return Text.take_front(At).count('\n') + 1;
    if (Matched == 1 && T.is(clang::tok::raw_identifier) && T.getRawIdentifier() == "backward") {
      Matched = 2;
      At = T.getLocation().getRawEncoding() - 1;
    } else {
      Matched = T.isOneOf(clang::tok::period, clang::tok::arrow) ? 1 : 0;
    }
  }
  return 0;
}

void Migrator::cudaUnits(std::vector<Plan> &Plans) {
  for (const UnitCommand &Unit : Tree.CudaUnits) {
    uint32_t Line = trainingLine(text(Unit.Source, {}));
    if (Line == 0)
      continue;
    for (const Rule *R : Configured.of(Unit.Source).Rules.byFact("cuda-unit")) {
      Finding X;
      X.Code = R->Code;
      X.Name = R->Name;
      X.Level = R->Level;
      X.Message = R->Message;
      X.Path = Unit.Source;
      X.Line = Line;
      X.Column = 1;
      // Its own program, those that link its library, or, if nobody says which these are, all that train.
      auto Concerns = [&](const Plan &Of) {
        if (Of.P.Name == Unit.Target)
          return true;
        auto Linked = Tree.Targets.find(Of.P.Name);
        bool Program = any_of(Plans, [&](const Plan &Other) { return Other.P.Name == Unit.Target; }) ||
                       any_of(Tree.CudaUnits, [&](const UnitCommand &Other) {
                         return Other.Target == Unit.Target && hasMain(Other.Source);
                       });
        return Linked != Tree.Targets.end() ? Linked->second.count(Unit.Target) != 0 : !Program && Of.Trains;
      };
      if (none_of(Plans, Concerns) && !silences(R, X.Path, X.Line, X.Code, X.Name))
        Final.Findings.push_back(X);
      for (Plan &Of : Plans)
        if (Concerns(Of))
          Of.M.Findings.push_back(X);
    }
  }
}

void Migrator::decide(Plan &Of) {
  Of.Result.Name = Of.P.Name;
  Of.Result.Units = Of.P.Sources;
  // What of other targets a program without training needs is nobody's business.
  if (!Of.Trains)
    erase_if(Of.Result.Units, [&](const std::string &Source) {
      return none_of(Tree.Units, [&](const UnitCommand &Unit) {
        return Unit.Source == Source && programName(Unit.Source, Unit.Target) == Of.P.Name;
      });
    });
  Of.Broken = !Of.P.Code.Errors.empty();
  // What is switched off isn't said, but half a migration is worse than none: the program is left alone.
  for (Finding &F : Of.M.Findings) {
    F.Silent = silences(inForce(Of.P).Rules.byCode(F.Code), F.Path, F.Line, F.Code, F.Name);
    Of.Result.Silent += F.Silent;
  }
  std::string LeftAlone = silencedEdit(Of);
  auto Refusal = find_if(Of.M.Findings, [](const Finding &F) { return F.Level == Severity::Refusal; });
  // What stands in code that doesn't compile wasn't understood.
  bool EditsBroken = Of.Broken && any_of(Of.P.Code.Functions, [&](const ir::Function &F) {
                       return F.Broken && F.Where.valid() && any_of(Of.M.Edits, [&](const Edit &E) {
                                return E.Path == Of.P.Code.Files[F.Where.File].Path && F.Where.Begin <= E.Begin &&
                                       E.End <= F.Where.End;
                              });
                     });
  if (Of.Broken && Of.P.Code.Distributed.empty() && (!O.AllowErrors || EditsBroken)) {
    Of.Result.What = Verdict::Refused;
    Of.Result.Reason = "it doesn't parse";
    Final.Unparsed = true;
    if (!Of.M.Edits.empty() && Refusal == Of.M.Findings.end() && !EditsBroken)
      Of.Result.Reason += "; what could be read wants " + std::to_string(Of.M.Edits.size()) +
                          (Of.M.Edits.size() == 1 ? " edit" : " edits") + ", which --allow-errors shows";
    Of.M.Edits.clear();
  } else if (Refusal != Of.M.Findings.end()) {
    Of.Result.What = Verdict::Refused;
    Of.Result.Reason = Refusal->Code + " " + Refusal->Name + " at " + Tree.display(Refusal->Path) + ":" +
                       std::to_string(Refusal->Line) + (Refusal->Silent ? ", switched off" : "");
    Of.M.Edits.clear();
  } else if (!LeftAlone.empty()) {
    Of.Result.What = Verdict::Refused;
    Of.Result.Reason = LeftAlone;
    Of.M.Edits.clear();
  } else if (Of.M.Edits.empty()) {
    Of.Result.What = Verdict::NothingToDo;
    // What was assumed to migrate it was said then.
    erase_if(Of.M.Findings, [](const Finding &F) { return F.Level == Severity::Remark; });
  } else {
    bool Clean = all_of(Of.M.Findings, [](const Finding &F) { return F.Level == Severity::Remark; });
    Of.Result.What = Clean && !Of.Broken ? Verdict::Migrated : Verdict::MigratedWithNotes;
  }
  Of.Result.Incomplete = Of.Broken;
  for (Finding &F : Of.M.Findings) {
    F.Incomplete = Of.Broken && Of.P.Code.Distributed.empty();
    if (!F.Silent && none_of(Final.Findings, [&](const Finding &Other) { return Other.key() == F.key(); }))
      Final.Findings.push_back(F);
  }
}

/// Whether a rule is switched off, by the configuration or by a comment.
bool Migrator::silences(const Rule *R, const std::string &Path, uint32_t Line, StringRef Code, StringRef Name) {
  bool Silent = R && R->Off;
  if (Path.empty() || Line == 0)
    return Silent;
  auto [It, New] = Comments.try_emplace(Path);
  if (New && Tree.owns(Path))
    It->second = Suppressions::in(text(Path, {}));
  for (const Suppression &S : It->second.All)
    if (S.First <= Line && Line <= S.Last && (S.Code == Code || S.Code == Name)) {
      Silenced.insert({Path, S.Line, S.Code});
      Silent = true;
    }
  return Silent;
}

/// Why a program with edits is left alone: one of them is switched off.
std::string Migrator::silencedEdit(Plan &Of) {
  std::string Why;
  for (const Edit &E : Of.M.Edits)
    if (!StringRef(E.Path).ends_with(".txt") &&
        silences(inForce(Of.P).Rules.byCode(E.Code), E.Path, E.Line, E.Code, E.Name) && Why.empty())
      Why = E.Code + " " + E.Name + " at " + Tree.display(E.Path) + ":" + std::to_string(E.Line) + ", switched off";
  return Why;
}

/// Comments that switch off what doesn't occur, or what there isn't.
void Migrator::checkSuppressions(const std::vector<Plan> &Plans) {
  std::set<std::tuple<std::string, unsigned, unsigned>> Said;
  auto Report = [&](const RuleSet &Rules, StringRef Fact, const std::string &Path, const Suppression &At,
                    const std::string &What) {
    if (!Said.insert({Path, At.Line, At.Column}).second)
      return;
    for (const Rule *R : Rules.byFact(Fact)) {
      if (R->Off)
        continue;
      Finding X;
      X.Code = R->Code;
      X.Name = R->Name;
      X.Level = R->Level;
      X.Message = What;
      X.Path = Path;
      X.Line = At.Line;
      X.Column = At.Column;
      Final.Findings.push_back(std::move(X));
    }
  };
  for (const Plan &Of : Plans) {
    // Elsewhere no rule was asked, or not all that they would have found is known.
    if (!Of.Trains || Of.Broken || !Of.P.Code.Distributed.empty())
      continue;
    const RuleSet &Rules = inForce(Of.P).Rules;
    for (const ir::File &File : Of.P.Code.Files) {
      if (!File.Project)
        continue;
      auto [It, New] = Comments.try_emplace(File.Path);
      if (New)
        It->second = Suppressions::in(text(File.Path, {}));
      for (const Suppression &S : It->second.Malformed)
        Report(Rules, "bad-suppression", File.Path, S, S.Code);
      for (const Suppression &S : It->second.All)
        if (!Rules.byCode(S.Code))
          Report(Rules, "bad-suppression", File.Path, S, "there is no rule '" + S.Code + "' to switch off");
        else if (!Silenced.count({File.Path, S.Line, S.Code}))
          Report(Rules, "unused-suppression", File.Path, S,
                 "'" + S.Code + "' has nothing to say here: take it out of this comment");
    }
  }
}

/// Takes the program out of what is edited; the reason is a finding.
void Migrator::refuse(Plan &Of, StringRef Code, std::string Message) {
  Finding X;
  X.Code = Code.str();
  if (const Rule *R = inForce(Of.P).Rules.byCode(Code))
    X.Name = R->Name;
  X.Level = Severity::Refusal;
  X.Message = std::move(Message);
  Of.Result.What = Verdict::Refused;
  Of.Result.Reason = X.Code + " " + X.Name;
  Of.M.Edits.clear();
  if (none_of(Final.Findings, [&](const Finding &Other) { return Other.key() == X.key(); }))
    Final.Findings.push_back(std::move(X));
}

/// Whether a program runs something that is edited in a file.
static bool reaches(const Program &P, const std::set<ir::FuncId> &Reached, StringRef Path,
                    const std::set<std::tuple<uint32_t, uint32_t, std::string>> &Edits) {
  for (ir::FuncId F : Reached) {
    const ir::Range &Where = P.Code.Functions[F].Where;
    if (!Where.valid() || P.Code.Files[Where.File].Path != Path)
      continue;
    for (const auto &[Begin, End, Text] : Edits)
      if (Where.Begin <= Begin && End <= Where.End)
        return true;
  }
  return false;
}

/// Whether a file is a library's, which is linked with the runtime where it is edited: what isn't migrated of the
/// programs that use it is built as before, and does what it did, as all edits do nothing where there is one process.
bool Migrator::ofLibrary(const std::string &Path, const std::vector<Plan> &Plans) const {
  bool Found = false;
  for (const UnitCommand &Unit : Tree.Units)
    if (Unit.Source == Path) {
      Found = true;
      if (Unit.Target.empty() || any_of(Plans, [&](const Plan &Of) { return Of.P.Name == Unit.Target; }))
        return false;
    }
  return Found;
}

/// Two programs that share a file must want the same of it; true if some didn't, and were refused.
bool Migrator::disagreements(std::vector<Plan> &Plans) {
  using Wanted = std::map<std::string, std::set<std::tuple<uint32_t, uint32_t, std::string>>>;
  std::vector<Wanted> All(Plans.size());
  std::vector<StringSet<>> Holds(Plans.size());
  for (size_t I = 0; I != Plans.size(); ++I) {
    for (const Edit &E : Plans[I].M.Edits)
      if (!StringRef(E.Path).ends_with(".txt"))
        All[I][E.Path].insert({E.Begin, E.End, E.Text});
    for (const ir::File &F : Plans[I].P.Code.Files)
      Holds[I].insert(F.Path);
  }
  bool Any = false;
  for (size_t I = 0; I != Plans.size(); ++I)
    for (const auto &[Path, Edits] : All[I]) {
      if (!Plans[I].migrated())
        break;
      for (size_t J = 0; J != Plans.size(); ++J) {
        if (I == J || !Holds[J].contains(Path) || !Plans[J].Trains)
          continue;
        auto Other = All[J].find(Path);
        if (Other != All[J].end() && Other->second == Edits)
          continue;
        // A program that runs nothing of what is edited has no say in it.
        if (Other == All[J].end() && !reaches(Plans[J].P, Plans[J].Reached, Path, Edits))
          continue;
        if (!Plans[J].migrated() && Other == All[J].end() && Plans[J].P.Code.Distributed.empty() &&
            ofLibrary(Path, Plans))
          continue;
        const auto &[A, B] = std::minmax(I, J);
        std::string Message = "programs `" + Plans[A].P.Name + "` and `" + Plans[B].P.Name +
                              "` need different edits in " + Tree.display(Path);
        if (Plans[J].Result.What == Verdict::Refused) // for reasons of its own
          Message = "`" + Plans[I].P.Name + "` needs edits in " + Tree.display(Path) + ", which `" + Plans[J].P.Name +
                    "` runs as well, and that is refused (" + Plans[J].Result.Reason + ")";
        refuse(Plans[I], "AM0903", Message);
        if (Plans[J].migrated())
          refuse(Plans[J], "AM0903", Message);
        Any = true;
        break;
      }
    }
  return Any;
}

/// The edits of all programs that are migrated, and what they make of the files.
Error Migrator::merge(const std::vector<Plan> &Plans) {
  Final.Edits.clear();
  Final.Texts.clear();
  for (const Plan &Of : Plans)
    if (Of.migrated())
      append_range(Final.Edits, Of.M.Edits);
  if (Error E = mergeEdits(Final.Edits))
    return E;
  // Nothing that a rule selected may get lost on the way: matches = edits + findings.
  for (const Plan &Of : Plans)
    for (const Edit &E : Of.M.Edits)
      if (Of.migrated() && (Of.M.Matches != Of.M.Edited + Of.M.Reported || !is_contained(Final.Edits, E)))
        return createStringError(inconvertibleErrorCode(), "the edit of " + E.Code + " at " + E.Path + ":" +
                                                               std::to_string(E.Line) +
                                                               " got lost; please report this");
  for (const Edit &E : Final.Edits)
    if (!Final.Texts.count(E.Path)) {
      const std::string &Before = text(E.Path, {});
      std::string Ignored;
      Final.Texts[E.Path] = {
          Before, formatTouched(E.Path, Tree.DiffRoot, applyEdits(Before, Final.Edits, E.Path), Final.Edits, Ignored)};
      if (!Ignored.empty())
        Final.StyleIgnored = Ignored;
    }
  return Error::success();
}

/// What an edited unit reports that it didn't report before is our doing.
bool Migrator::compiles(std::vector<Plan> &Plans, const std::vector<ir::Unit> &Read) {
  bool All = true;
  for (const ir::Unit &U : Read)
    for (const ir::Problem &E : U.Errors) {
      if (auto Before = Errors.find({U.Source, U.Target}); Before != Errors.end() && Before->second.count(E.Message))
        continue;
      for (Plan &Of : Plans)
        if (Of.migrated() && Of.P.holds(U)) {
          refuse(Of, "AM0901",
                 "the edited program doesn't compile: " + Tree.display(E.Path) + ":" + std::to_string(E.Line) + ": " +
                     E.Message);
          All = false;
        }
    }
  return All;
}

/// The edited text is parsed again, in memory: it must compile, and migrating it must change nothing. Programs that
/// fail are refused; false if there are any.
bool Migrator::verify(std::vector<Plan> &Plans) {
  Overlay Edited;
  for (const auto &[Path, Text] : Final.Texts)
    Edited[Path] = Text.second;
  std::vector<ir::Unit> Read = Units.read(Edited);
  if (!compiles(Plans, Read))
    return false;
  if (O.Verify == VerifyMode::Compile) {
    // As the compiler reads it, bodies of other people's templates included. Nothing is kept.
    Project Touched = Tree;
    erase_if(Touched.Units, [&](const UnitCommand &Command) {
      return none_of(Plans,
                     [&](const Plan &Of) { return Of.migrated() && is_contained(Of.P.Sources, Command.Source); });
    });
    ReaderOptions Whole;
    Whole.Parsing = Parsing;
    Whole.Parsing.Precompile = Whole.Parsing.SkipBodies = false;
    Whole.Prefilter = Whole.Cache = false;
    Whole.Isolate = O.Isolate;
    Whole.Jobs = O.Jobs;
    StatusLine Status(Err, !O.Quiet);
    if (!compiles(Plans, Reader(Touched, Configured.patterns(), Whole, Status).read(Edited)))
      return false;
  }
  bool All = true;
  for (const Plan &Again : analyse(std::move(Read), Edited)) {
    auto Of = find_if(Plans, [&](const Plan &P) { return P.P.Name == Again.P.Name && P.P.Sources == Again.P.Sources; });
    if (Of == Plans.end() || !Of->migrated())
      continue;
    if (!Again.M.Edits.empty()) {
      const Edit &E = Again.M.Edits.front();
      refuse(*Of, "AM0904",
             "a second migration of `" + Of->P.Name + "` would edit " + Tree.display(E.Path) + ":" +
                 std::to_string(E.Line) + " again (" + E.Code + " " + E.Name + ")");
      All = false;
      continue;
    }
    for (const Finding &F : Again.M.Findings)
      if (F.Level == Severity::Refusal && Of->migrated()) {
        refuse(*Of, "AM0904",
               "the migrated `" + Of->P.Name + "` isn't satisfied: " + F.Message + " (" + Tree.display(F.Path) + ":" +
                   std::to_string(F.Line) + ")");
        All = false;
      }
  }
  return All;
}

Result Migrator::run() {
  std::vector<ir::Unit> Read = Units.read();
  reportErrors(Read);
  Final.Unparsed = !Errors.empty() && !O.AllowErrors;
  std::vector<Plan> Plans = analyse(std::move(Read), {});
  if (!O.Dump.empty())
    return std::move(Final);
  cudaUnits(Plans);
  for (Plan &Of : Plans)
    decide(Of);
  checkSuppressions(Plans);
  // Each round refuses a program at least, so it ends.
  while (true) {
    while (disagreements(Plans))
      ;
    if (Error E = merge(Plans)) {
      std::string Message = llvm::toString(std::move(E));
      for (Plan &Of : Plans)
        if (Of.migrated())
          refuse(Of, "AM0902", Message);
      Final.Unverified = true;
      cantFail(merge(Plans));
    }
    if (O.Verify == VerifyMode::None || Final.Texts.empty())
      break;
    if (Parsing.RuntimeInclude.empty()) {
      for (Plan &Of : Plans)
        if (Of.migrated())
          refuse(Of, "AM0901",
                 "the runtime's headers aren't found, so the result can't be checked; name their folder with "
                 "--runtime-include, or use --no-verify");
      Final.Unverified = true;
      continue;
    }
    if (verify(Plans))
      break;
    Final.Unverified = true;
  }
  for (Plan &Of : Plans)
    Final.Programs.push_back(std::move(Of.Result));
  for (const Reader::SkippedProgram &Skipped : Units.skippedPrograms())
    Final.Programs.push_back({Skipped.Name, Verdict::NothingToDo, Skipped.Units, "", false, 0});
  llvm::stable_sort(Final.Programs, [](const ProgramResult &A, const ProgramResult &B) { return A.Name < B.Name; });
  llvm::stable_sort(Final.Findings, [](const Finding &A, const Finding &B) { return A.key() < B.key(); });
  return std::move(Final);
}

} // namespace migrate
