//===- Serialise.cpp ------------------------------------------------------===//
#include "units/Serialise.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/LEB128.h"
#include "llvm/Support/xxhash.h"
#include <type_traits>

using namespace llvm;

namespace migrate {
namespace {

/// Both archives are given the same fields, so that writing and reading can't disagree.
class Writer {
public:
  explicit Writer(std::string &Out) : Out(Out) {}

  template <typename... T> void operator()(const T &...Fields) { (put(Fields), ...); }

private:
  template <typename T> void put(const T &X) {
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
      uint8_t Bytes[16];
      Out.append(reinterpret_cast<char *>(Bytes), encodeULEB128(static_cast<uint64_t>(X), Bytes));
    } else if constexpr (std::is_same_v<T, std::string>) {
      put(X.size());
      Out += X;
    } else {
      fields(*this, const_cast<T &>(X));
    }
  }
  template <typename T, size_t N> void put(const T (&Array)[N]) {
    for (const T &X : Array)
      put(X);
  }
  template <typename T> void put(const std::vector<T> &List) {
    put(List.size());
    for (const T &X : List)
      put(X);
  }
  template <typename A, typename B> void put(const std::pair<A, B> &P) { (*this)(P.first, P.second); }
  template <typename K, typename V> void put(const std::map<K, V> &M) {
    put(M.size());
    for (const auto &[Key, Value] : M)
      (*this)(Key, Value);
  }

  std::string &Out;
};

class Reader {
public:
  explicit Reader(StringRef Bytes) : At(reinterpret_cast<const uint8_t *>(Bytes.data())), End(At + Bytes.size()) {}

  template <typename... T> void operator()(T &...Fields) { (get(Fields), ...); }
  bool whole() const { return !Failed && At == End; }

private:
  uint64_t number() {
    unsigned Length = 0;
    const char *Error = nullptr;
    uint64_t X = decodeULEB128(At, &Length, End, &Error);
    if (Error) {
      Failed = true;
      At = End;
      return 0;
    }
    At += Length;
    return X;
  }
  /// Of elements to come: each takes a byte at least.
  size_t count() {
    uint64_t N = number();
    if (N > static_cast<uint64_t>(End - At)) {
      Failed = true;
      At = End;
      return 0;
    }
    return N;
  }
  template <typename T> void get(T &X) {
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
      X = static_cast<T>(number());
    } else if constexpr (std::is_same_v<T, std::string>) {
      size_t N = count();
      X.assign(reinterpret_cast<const char *>(At), N);
      At += N;
    } else {
      fields(*this, X);
    }
  }
  template <typename T, size_t N> void get(T (&Array)[N]) {
    for (T &X : Array)
      get(X);
  }
  template <typename T> void get(std::vector<T> &List) {
    List.resize(count());
    for (T &X : List)
      get(X);
  }
  template <typename A, typename B> void get(std::pair<A, B> &P) { (*this)(P.first, P.second); }
  template <typename K, typename V> void get(std::map<K, V> &M) {
    for (size_t N = count(); N-- > 0 && !Failed;) {
      K Key;
      get(Key);
      get(M[Key]);
    }
  }

  const uint8_t *At, *End;
  bool Failed = false;
};

template <typename A> void fields(A &Io, ir::Range &R) { Io(R.File, R.Begin, R.End, R.Line, R.Column, R.Editable); }
template <typename A> void fields(A &Io, ir::Type &T) { Io(T.Kind, T.Hold, T.Reference, T.Const, T.Own, T.Name); }
template <typename A> void fields(A &Io, ir::Var &V) {
  Io(V.Name, V.Usr, V.Type, V.Decl, V.Function, V.Param, V.Field, V.Global, V.EachThread);
}
template <typename A> void fields(A &Io, ir::Expr &E) {
  Io(E.Kind, E.Type, E.Where, E.CalleeName, E.Name, E.Callee, E.Var, E.Func, E.Object, E.Args, E.Writable, E.NoReturn,
     E.Changes, E.Direct);
}
template <typename A> void fields(A &Io, ir::Stmt &S) {
  Io(S.Kind, S.Where, S.Value, S.Var, S.Children, S.Transparent);
}
template <typename A> void fields(A &Io, ir::Function &F) {
  Io(F.Usr, F.Name, F.Qualified, F.Pattern, F.Record, F.Result, F.Params, F.Bases, F.Inits, F.Body, F.Where,
     F.BodyBegin, F.Parent, F.Main, F.Broken, F.Overrides);
}
template <typename A> void fields(A &Io, ir::File &F) { Io(F.Path, F.Project, F.Includes, F.Spellings); }
template <typename A> void fields(A &Io, ir::RuleMatch &M) { Io(M.Rule, M.Function, M.Nodes, M.Whole); }
template <typename A> void fields(A &Io, ir::Problem &P) { Io(P.Path, P.Message, P.Line, P.Column, P.Fatal, P.Offset); }
template <typename A> void fields(A &Io, ir::Unit &U) {
  Io(U.Source, U.Target, U.Files, U.Types, U.Vars, U.Exprs, U.Stmts, U.Functions, U.Globals, U.Matches, U.Errors,
     U.Distributed, U.HasMain);
}
template <typename A> void fields(A &Io, Dependency &D) { Io(D.What, D.Path, D.Hash); }
template <typename A> void fields(A &Io, ReadUnit &U) { Io(U.Unit, U.Own, U.System, U.SystemList); }
template <typename A> void fields(A &Io, StoredRun &R) { Io(R.Out, R.Err, R.Code, R.Edits, R.Own, R.System); }

template <typename T> std::string pack(const T &X) {
  std::string Out(sizeof(uint64_t), '\0');
  Writer W(Out);
  W(X);
  support::endian::write64le(Out.data(), xxh3_64bits(StringRef(Out).drop_front(sizeof(uint64_t))));
  return Out;
}

template <typename T> std::optional<T> unpack(StringRef Bytes) {
  if (Bytes.size() < sizeof(uint64_t))
    return std::nullopt;
  StringRef Payload = Bytes.drop_front(sizeof(uint64_t));
  if (support::endian::read64le(Bytes.data()) != xxh3_64bits(Payload))
    return std::nullopt;
  T X;
  Reader R(Payload);
  R(X);
  if (!R.whole())
    return std::nullopt;
  return X;
}

} // namespace

std::string serialise(const ReadUnit &U) { return pack(U); }
std::optional<ReadUnit> deserialise(StringRef Bytes) { return unpack<ReadUnit>(Bytes); }
std::string serialise(const std::vector<Dependency> &List) { return pack(List); }
std::optional<std::vector<Dependency>> deserialiseDependencies(StringRef Bytes) {
  return unpack<std::vector<Dependency>>(Bytes);
}
std::string serialise(const StoredRun &R) { return pack(R); }
std::optional<StoredRun> deserialiseRun(StringRef Bytes) { return unpack<StoredRun>(Bytes); }

} // namespace migrate
