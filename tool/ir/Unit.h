//===- Unit.h - What is kept of a program once its AST is gone ------------===//
//
//   compile commands -> units -> parse -> lower --+
//                                                 +-> link -> infer -> rules -> edit groups -> merge -> verify ->
//                                                 report
//   compile commands -> units -> parse -> lower --+
//
// `lower` turns one translation unit into a `Unit`: functions, variables, statements and expressions, with just what
// the inference and the rules ask for. It is plain data (indices, no pointers), so that units can be joined by USR
// (`link`), kept in a cache, and analysed without Clang.
//
//===----------------------------------------------------------------------===//
#ifndef ACCELERATE_MIGRATE_IR_UNIT_H
#define ACCELERATE_MIGRATE_IR_UNIT_H

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace migrate::ir {

constexpr uint32_t None = ~0u;
using FileId = uint32_t;
using TypeId = uint32_t;
using VarId = uint32_t;
using ExprId = uint32_t;
using StmtId = uint32_t;
using FuncId = uint32_t;

/// Half-open byte range in a file. `Editable` is false in macro bodies, in files outside the project and wherever an
/// edit of this range could not be exact.
struct Range {
  FileId File = None;
  uint32_t Begin = 0, End = 0;
  uint32_t Line = 0, Column = 0;
  bool Editable = false;

  bool valid() const { return File != None; }
  bool contains(const Range &Other) const { return File == Other.File && Begin <= Other.Begin && Other.End <= End; }
};

enum class TypeKind : uint8_t {
  Unknown,
  Void,
  Bool,
  Integer,
  Floating,
  Enum,
  String,
  Tensor,
  Module,
  Optimizer,
  Scheduler,
  DataLoader,
  Device,
  DeviceType,
  Stream,
  FileStream,
  Example,
  Container,
  Iterator,
  Accelerator,
};

/// How a value of the kind is held: itself, or through something that is dereferenced.
enum class Holding : uint8_t { Value, Pointer, Smart, Holder };

struct Type {
  TypeKind Kind = TypeKind::Unknown;
  Holding Hold = Holding::Value;
  bool Reference = false, Const = false;
  bool Own = false; ///< Unknown: a class of the project's
  std::string Name; ///< canonical, without qualifiers and references

  /// A map of tensors by their names.
  bool namesTensors() const {
    return (Name.starts_with("std::map<std::") || Name.starts_with("std::unordered_map<std::")) &&
           Name.find("string<char>, at::Tensor") < Name.size();
  }
  /// A map of any kind, itself.
  bool map() const { return Name.starts_with("std::map<") || Name.starts_with("std::unordered_map<"); }
  /// A pair or tuple, itself: no pointer to one, no array of them.
  bool tuple() const { return isTuple(Name) && !Name.ends_with("]") && !Name.ends_with("*"); }
  /// A list of pairs or tuples.
  bool listsTuples() const {
    const size_t Items = Name.find('<');
    return Items != std::string::npos && isTuple(std::string_view(Name).substr(Items + 1));
  }
  bool number() const { return Kind == TypeKind::Bool || Kind == TypeKind::Integer || Kind == TypeKind::Floating; }

private:
  static bool isTuple(std::string_view Name) {
    return Name.starts_with("std::pair<") || Name.starts_with("std::tuple<");
  }
};

struct Var {
  std::string Name, Usr; ///< `Usr` is set for globals, statics and fields: what other units may name
  TypeId Type = None;
  Range Decl; ///< the declarator, from its type to the end of its initialiser
  FuncId Function = None;
  bool Param = false, Field = false, Global = false;
  bool EachThread = false; ///< `thread_local`
};

enum class ExprKind : uint8_t {
  Unknown,
  Ref,   ///< Var
  Field, ///< Object . Var
  This,
  Call,        ///< Name, Callee, Object (of a member call), Args
  Construct,   ///< Type, Args
  Literal,     ///< Name is its text
  Unary,       ///< Name is the operator; Args[0]
  Binary,      ///< Name is the operator; Args[0], Args[1]
  Assign,      ///< Name is `=` or a compound operator; Args[0], Args[1]
  Index,       ///< Object, Args
  Conditional, ///< Args[0] ? Args[1] : Args[2]
  Lambda,      ///< Func
  List,        ///< Args
  Cast,        ///< Args[0]; Type
};

struct Expr {
  ExprKind Kind = ExprKind::Unknown;
  TypeId Type = None;
  Range Where;
  Range CalleeName;   ///< of calls: the name as written, with its qualifiers and without template arguments
  std::string Name;   ///< qualified name of what is called, operator, or text of a literal
  std::string Callee; ///< USR of what is called
  VarId Var = None;
  FuncId Func = None; ///< of lambdas
  ExprId Object = None;
  std::vector<ExprId> Args;
  uint32_t Writable = 0; ///< of calls: bit I is set if parameter I is a reference or pointer to what isn't const
  bool NoReturn = false;
  bool Changes = false; ///< of calls: a method that isn't const
  bool Direct = false;  ///< of calls: `Base::method()`, whatever overrides it
};

enum class StmtKind : uint8_t {
  Block,
  Expr,     ///< Value
  Decl,     ///< Var, Value (initialiser or None)
  If,       ///< Value, Children[0] then, Children[1] else (or None)
  Loop,     ///< Children: init, increment, body (each or None); Value is the condition; Var set for range-for
  RangeFor, ///< Var, Value is the range, Children[0] the body
  Return,   ///< Value; Children: calls of destructors, as of the two below and at the end of a block
  Break,
  Continue,
  Goto,
  Switch,  ///< Value, Children: what stands in its body; each may be jumped to
  Try,     ///< Children[0] the body, then the handlers
  Threads, ///< Children, which several threads run at once (an OpenMP region)
  Other,   ///< Children, in order (labels)
};

struct Stmt {
  StmtKind Kind = StmtKind::Other;
  Range Where; ///< the whole statement, with its semicolon
  ExprId Value = None;
  VarId Var = None;
  std::vector<StmtId> Children;
  bool Transparent = false; ///< a block that opens no scope: several declarators in one declaration
};

struct Function {
  std::string Usr, Name, Qualified;
  std::string Pattern; ///< of template instantiations: where the template stands, else empty
  std::string Record;  ///< canonical name of the class, of methods
  TypeId Result = None;
  std::vector<VarId> Params;
  std::vector<ExprId> Bases;                   ///< of constructors: those of bases, or the one that it delegates to
  std::vector<std::pair<VarId, ExprId>> Inits; ///< of constructors: fields and their initialisers
  StmtId Body = None;
  Range Where;            ///< from the first token to the closing brace
  uint32_t BodyBegin = 0; ///< just behind the opening brace; 0 of constructors that nobody wrote
  FuncId Parent = None;   ///< of lambdas: the function they stand in
  bool Main = false;
  bool Broken = false; ///< it holds code that doesn't compile
  std::vector<std::string> Overrides;

  /// What a constructor runs before its body.
  template <typename Callback> void forEachInit(Callback Visit) const {
    for (ExprId Base : Bases)
      Visit(Base);
    for (const auto &[Field, Init] : Inits)
      Visit(Init);
  }
};

struct File {
  std::string Path; ///< real path
  bool Project = false;
  std::vector<uint32_t> Includes;     ///< offsets of `#include` lines outside conditionals
  std::vector<std::string> Spellings; ///< what these lines name, `<torch/torch.h>`
};

/// A place where a rule's pattern matched, by the rule's index and the ranges that it bound.
struct RuleMatch {
  uint32_t Rule = 0;
  FuncId Function = None;
  std::map<std::string, ExprId> Nodes;
  bool Whole = true; ///< all that the pattern binds is in `Nodes`
};

struct Problem {
  std::string Path, Message;
  uint32_t Line = 0, Column = 0;
  bool Fatal = false;
  uint32_t Offset = None; ///< in its file
};

struct Unit {
  std::string Source; ///< real path of the main file
  std::string Target; ///< the build target whose object this is, or empty
  std::vector<File> Files;
  std::vector<Type> Types;
  std::vector<Var> Vars;
  std::vector<Expr> Exprs;
  std::vector<Stmt> Stmts;
  std::vector<Function> Functions;
  std::vector<std::pair<VarId, ExprId>> Globals; ///< file-scope variables and static members, with their initialisers
  std::vector<RuleMatch> Matches;
  std::vector<Problem> Errors;          ///< what Clang reported
  std::vector<std::string> Distributed; ///< uses of c10d, MPI or NCCL: "name at path:line"
  bool HasMain = false;

  const Type &type(ExprId E) const { return Exprs[E].Type == None ? Unknown : Types[Exprs[E].Type]; }
  const Type &typeOf(VarId V) const { return Vars[V].Type == None ? Unknown : Types[Vars[V].Type]; }

private:
  Type Unknown;
};

} // namespace migrate::ir

#endif
