//===- Yaml.cpp -----------------------------------------------------------===//
#include "rules/Yaml.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/YAMLParser.h"

using namespace llvm;

namespace migrate {

TextPlace YamlValue::placeOf(size_t Offset) const {
  StringRef Ahead = StringRef(Text).take_front(Offset);
  unsigned Lines = Ahead.count('\n');
  unsigned Column = Ahead.size() - (Lines == 0 ? 0 : Ahead.rfind('\n') + 1);
  if (Block)
    return {Where.Line + 1 + Lines, Indent + 1 + Column};
  // Where a plain scalar goes over several lines, its breaks are lost: its beginning has to do.
  return {Where.Line, Where.Column + Indent + Column};
}

namespace {

/// Turns LLVM's nodes, which can be walked once, into values.
class Builder {
public:
  Builder(StringRef Text, YamlFile &File) : Text(Text), File(File) {}

  YamlValue build(yaml::Node *N) {
    YamlValue V;
    if (!N)
      return V;
    V.Where = place(N->getSourceRange().Start);
    if (auto *Scalar = dyn_cast<yaml::ScalarNode>(N)) {
      SmallString<64> Storage;
      V.What = YamlValue::Kind::Scalar;
      V.Text = Scalar->getValue(Storage).str();
      V.Indent = Scalar->getRawValue().starts_with("\"") || Scalar->getRawValue().starts_with("'") ? 1 : 0;
    } else if (auto *Block = dyn_cast<yaml::BlockScalarNode>(N)) {
      V.What = YamlValue::Kind::Scalar;
      V.Text = Block->getValue().str();
      V.Block = true;
      // LLVM's range begins with the text, on the line below the `|`.
      --V.Where.Line;
      size_t Start = Text.rfind('\n', offset(N->getSourceRange().Start));
      for (StringRef Lines = Text.substr(Start); Lines.consume_front("\n");
           Lines = Lines.drop_front(Lines.find('\n'))) {
        StringRef Line = Lines.take_until([](char C) { return C == '\n'; });
        V.Indent = Line.size() - Line.ltrim(' ').size();
        if (!Line.trim().empty() || Line.size() == Lines.size())
          break;
      }
    } else if (auto *Map = dyn_cast<yaml::MappingNode>(N)) {
      V.What = YamlValue::Kind::Map;
      for (yaml::KeyValueNode &Field : *Map) {
        YamlValue Key = build(Field.getKey());
        V.Fields.emplace_back(std::move(Key), build(Field.getValue()));
      }
    } else if (auto *List = dyn_cast<yaml::SequenceNode>(N)) {
      V.What = YamlValue::Kind::List;
      for (yaml::Node &Item : *List)
        V.Items.push_back(build(&Item));
    } else if (isa<yaml::AliasNode>(N)) {
      File.fail(V.Where, "aliases aren't understood: write the value out");
    }
    return V;
  }

private:
  size_t offset(SMLoc Loc) const {
    const char *At = Loc.getPointer();
    return At && Text.begin() <= At && At <= Text.end() ? At - Text.begin() : 0;
  }
  TextPlace place(SMLoc Loc) const {
    StringRef Ahead = Text.take_front(offset(Loc));
    size_t Break = Ahead.rfind('\n');
    return {unsigned(Ahead.count('\n') + 1), unsigned(Ahead.size() - (Break == StringRef::npos ? 0 : Break + 1) + 1)};
  }

  StringRef Text;
  YamlFile &File;
};

} // namespace

Expected<YamlFile> YamlFile::read(StringRef Path, StringRef Empty) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> Buffer = MemoryBuffer::getFile(Path);
  if (!Buffer)
    return createStringError(Buffer.getError(), "'" + Path + "' can't be read: " + Buffer.getError().message());
  YamlFile File;
  File.Path = Path.str();
  SourceMgr Sources;
  Sources.setDiagHandler(
      [](const SMDiagnostic &D, void *Of) {
        static_cast<YamlFile *>(Of)->fail({unsigned(D.getLineNo()), unsigned(D.getColumnNo() + 1)}, D.getMessage());
      },
      &File);
  StringRef Text = (*Buffer)->getBuffer();
  yaml::Stream Documents(Text, Sources, /*ShowColors=*/false);
  auto Document = Documents.begin();
  if (Document != Documents.end())
    File.Root = Builder(Text, File).build(Document->getRoot());
  if (Documents.failed())
    File.fail({}, "this isn't YAML");
  else if (File.Root.What == YamlValue::Kind::Null)
    File.fail({}, Empty);
  else if (++Document != Documents.end())
    File.fail({unsigned(Text.count('\n') + 1), 1}, "one document to a file");
  if (Error E = File.takeError())
    return E;
  return File;
}

void YamlFile::fail(TextPlace At, const Twine &Message) {
  if (First.empty())
    First = (Path + ":" + Twine(At.Line) + ":" + Twine(At.Column) + ": " + Message).str();
}

Error YamlFile::takeError() const {
  return First.empty() ? Error::success() : createStringError(inconvertibleErrorCode(), First);
}

void YamlFile::fields(const YamlValue &Map, ArrayRef<Field> Known) {
  std::vector<StringRef> Keys;
  for (const Field &F : Known)
    Keys.push_back(F.Key);
  if (Map.What != YamlValue::Kind::Map)
    return fail(Map.Where, "keys and values are wanted here, of: " + join(Keys, ", "));
  std::vector<StringRef> Seen;
  for (const auto &[Key, Value] : Map.Fields) {
    const Field *Of = find_if(Known, [&, K = StringRef(Key.Text)](const Field &F) { return F.Key == K; });
    if (Of == Known.end())
      return fail(Key.Where, "unknown key '" + Key.Text + "'; there are: " + join(Keys, ", "));
    if (is_contained(Seen, Of->Key))
      return fail(Key.Where, "'" + Key.Text + "' stands here twice");
    Seen.push_back(Of->Key);
    Of->Read(Value);
  }
  for (const Field &F : Known)
    if (F.Required && !is_contained(Seen, F.Key))
      return fail(Map.Where, "the key '" + F.Key + "' is missing");
}

std::string YamlFile::text(const YamlValue &Value) {
  if (Value.What != YamlValue::Kind::Scalar)
    fail(Value.Where, "a text is wanted here");
  return Value.Text;
}

void YamlFile::each(const YamlValue &List, function_ref<void(const YamlValue &)> Visit) {
  if (List.What == YamlValue::Kind::Scalar)
    return Visit(List);
  if (List.What != YamlValue::Kind::List)
    return fail(List.Where, "a list is wanted here");
  for (const YamlValue &Item : List.Items)
    Visit(Item);
}

unsigned YamlFile::choice(const YamlValue &Value, ArrayRef<StringRef> Names) {
  std::string Text = text(Value);
  const StringRef *It = find(Names, StringRef(Text));
  if (It != Names.end())
    return It - Names.begin();
  fail(Value.Where, "'" + Text + "' isn't one of: " + join(Names, ", "));
  return 0;
}

} // namespace migrate
