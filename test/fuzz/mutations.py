"""Mutations of the tool's inputs: C++ sources, JSON, YAML and CMake texts, and the files of its cache.

All of them take a random generator and bytes, and return bytes; the same generator gives the same result.
"""

import json
import re

TOKEN = re.compile(
    rb'[A-Za-z_]\w*|\d[\w.]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/|\s+|<<=?|>>=?|->|::|&&|\|\|'
    rb'|[-+*/=!<>]=|\+\+|--|.',
    re.DOTALL,
)
KEYWORDS = set(b"""auto bool break case catch char class const constexpr continue default delete do double else enum
explicit false float for friend if inline int int64_t long namespace new noexcept nullptr operator private protected
public return short signed sizeof static struct switch template this throw true try typedef typename union unsigned
using virtual void volatile while include define pragma once""".split())

# What training code might hold as well; $a and $b become names of the text. Most of it compiles where they are tensors.
STATEMENTS = [
    b"if ($a.dim()) break;",
    b"continue;",
    b"return 0;",
    b"goto end; end:;",
    b"main();",
    b"std::abort();",
    b"for (int i = 0; i < 3; ++i) $a.backward();",
    b"for (;;) { break; }",
    b"do { $a += $b; } while (false);",
    b"switch ($a.dim()) { case 0: $a += $b; case 1: break; default:; }",
    b"auto copy_ = $a; copy_ = $b;",
    b"try { $a.backward(); } catch (...) { throw; }",
    b"[&] { return $a; }();",
    b"auto f_ = [&](auto x) { return x + $b; }; f_($a);",
    b"auto& r_ = $a; r_ = $b;",
    b"auto* p_ = &$a; *p_ = $b;",
    b"std::swap($a, $b);",
    b"auto [x_, y_] = std::make_pair($a, $b);",
    b"static auto s_ = $a;",
    b"extern int e_;",
    b'std::printf("%f", $a.item<float>());',
    b"$a += $b;",
    b"$a = $a;",
    b"$a;",
    b'torch::save(model, "m.pt");',
    b"model->to(torch::kCUDA);",
    b"torch::Device d_(torch::kCUDA);",
    b"torch::NoGradGuard g_;",
    b"std::vector<torch::Tensor> v_; v_.push_back($a); torch::cat(v_).backward();",
    b"delete &$a;",
    b"throw $a;",
    b"struct Local { torch::Tensor t; void go() { t.backward(); } } l_; l_.t = $a; l_.go();",
    b"auto self_ = [&](auto&& me, torch::Tensor t) -> torch::Tensor { return t.dim() ? me(me, t) : t; };"
    b" $a = self_(self_, $a);",
    b"std::function<void()> again_ = [&] { again_(); }; again_();",
    b"if (auto q_ = $a.dim(); q_ > 1) { } else { }",
    b"double sum_ = 0; for (auto& b_ : *loader) sum_ += $a.item<double>(); std::printf(\"%f\", sum_);",
    b"while ($a.item<float>() > 0.5) $a = $a * 2;",
    b"for (auto& x_ : *loader) { for (auto& y_ : *loader) { } }",
    b"int n_ = 0; n_ = n_++ + ++n_; if (n_) optimizer.step();",
    b"auto m_ = std::move($a); m_.backward();",
    b"torch::Tensor a_[3]; a_[0] = $a; a_[$a.dim()] = $b; a_[1].backward();",
    b"asm(\"\");",
    b"#pragma omp parallel for\n",
    b"$a.backward({}, true);",
    b"torch::autograd::backward({$a});",
    b"(void)sizeof($a.backward());",
    b"decltype($a) other_ = $b; other_.backward();",
    b"std::unique_ptr<torch::Tensor> u_(new torch::Tensor($a)); u_->backward();",
]
DECLARATIONS = [
    b"void ping(torch::Tensor t); inline void pong(torch::Tensor t) { ping(t); }\n"
    b"inline void ping(torch::Tensor t) { pong(t); }\n",
    b"inline torch::Tensor again(torch::Tensor t) { return t.dim() ? again(again(t) + again(t)) : t; }\n",
    b"template <typename T> void learn_(T t) { t.backward(); }\n",
    b"template <int N> struct Deep { Deep<N - 1> d; };\n",
    b"struct Self { Self* next; torch::Tensor t; void all() { t.backward(); if (next) next->all(); } };\n",
    b"using Loss = torch::Tensor; typedef Loss Loss2;\n",
    b"namespace torch { struct Tensor2 : Tensor {}; }\n",
    b"static torch::Tensor global_ = torch::zeros({1});\n",
    b"#define backward backward\n",
    b"#define STEP(x) x.backward()\n",
    b"#define CAT(a, b) a##b\n",
    b'#line 100000000 "elsewhere.cpp"\n',
    b"#error no\n",
    b"#if 0\n",
    b"#endif\n",
    b"#include <torch/torch.h>\n",
    b'#include "main.cpp"\n',
    b"#include __FILE__\n",
    b"#include MISSING\n",
    b"extern \"C\" {\n",
    b"class Base { virtual void go() = 0; }; class Derived : public Base, Derived {};\n",
    b"int main(int, char**);\n",
    b"inline int main_() { return main_(); }\n",
    b"import std;\n",
    b"module;\n",
    b"#embed __FILE__\n",
    b"int main() {}\n",
    b"#pragma clang module import x\n",
    b"#include_next <torch/torch.h>\n",
    b"[[noreturn]] void end_();\n",
]
OPEN, CLOSE = b"([{<", b")]}>"


def tokens(text):
    return TOKEN.findall(text)


def names(text):
    found = sorted({t for t in tokens(text) if (t[:1].isalpha() or t[:1] == b"_") and t not in KEYWORDS})
    return found or [b"x"]


def some(rng, most):
    """A length: mostly small, now and then large."""
    return max(1, min(most, int(2 ** (rng.random() ** 2 * most.bit_length()))))


def at_statement(rng, text):
    """A place behind `;`, `{` or `}`."""
    places = [m.end() for m in re.finditer(rb"[;{}]", text)] or [len(text)]
    return rng.choice(places)


def put(text, place, what):
    return text[:place] + what + text[place:]


# Any text.


def truncate(rng, text):
    return text[: rng.randrange(len(text) + 1)]


def random_bytes(rng, text):
    place, length = rng.randrange(len(text) + 1), some(rng, 40)
    return text[:place] + rng.randbytes(length) + text[place + rng.choice([0, length]) :]


def odd_bytes(rng, text):
    what = rng.choice(
        [
            b"\0",
            b"\xef\xbb\xbf",
            b"\r",
            b"\xff",
            b"\x1a",
            b"\xf0\x9f\x9a\x80",
            "ä̈".encode(),
            b"\xe2\x80\xae",
            b"\t",
            b"\f",
            b"\\\n",
            b"??/\n",
            b"\0" * 100,
        ]
    )
    return put(text, rng.choice([0, len(text), rng.randrange(len(text) + 1)]), what)


def line_ends(rng, text):
    how = rng.randrange(4)
    if how == 0:
        return text.replace(b"\n", b"\r\n")
    if how == 1:
        return text.replace(b"\n", b"\r")
    if how == 2:
        return text.rstrip(b"\n")
    return b"".join(line + rng.choice([b"\n", b"\r\n", b"\r"]) for line in text.split(b"\n"))


def lines(rng, text):
    all_lines = text.splitlines(keepends=True) or [b""]
    i, j = rng.randrange(len(all_lines)), rng.randrange(len(all_lines))
    how = rng.randrange(4)
    if how == 0:
        del all_lines[i]
    elif how == 1:
        all_lines.insert(j, all_lines[i])
    elif how == 2:
        all_lines[i], all_lines[j] = all_lines[j], all_lines[i]
    else:
        i, j = min(i, j), max(i, j)
        all_lines[i:j] = []
    return b"".join(all_lines)


# C++.


def token_edit(rng, text):
    parts = tokens(text)
    if not parts:
        return b";"
    i = rng.randrange(len(parts))
    n = some(rng, 12)
    how = rng.randrange(5)
    if how == 0:
        del parts[i : i + n]
    elif how == 1:
        parts[i:i] = parts[i : i + n] * some(rng, 6)
    elif how == 2:
        j = rng.randrange(len(parts))
        parts[i], parts[j] = parts[j], parts[i]
    elif how == 3:
        parts[i] = rng.choice(parts)
    else:
        parts.insert(i, rng.choice(parts))
    return b"".join(parts)


def rename(rng, text):
    """All uses of one name become another."""
    old, new = rng.choice(names(text)), rng.choice(names(text))
    return re.sub(rb"\b%s\b" % re.escape(old), new, text)


def bracket(rng, text):
    places = [m.start() for m in re.finditer(rb"[(){}\[\]<>]", text)]
    if not places:
        return text
    place = rng.choice(places)
    how = rng.randrange(3)
    return (
        text[:place]
        + (b"", text[place : place + 1] * 2, rng.choice([b"{", b"}", b"(", b")", b"<"]))[how]
        + text[place + 1 :]
    )


def nest(rng, text):
    """Something deep around a name, or at a statement."""
    n = some(rng, 3000)
    name = rng.choice(names(text))
    uses = [m for m in re.finditer(rb"\b%s\b" % re.escape(name), text)]
    how = rng.randrange(14)
    if how < 6 and uses:
        use = rng.choice(uses)
        inner = use.group()
        wrapped = [
            b"(" * n + inner + b")" * n,
            b"!" * n + inner,
            inner + (b" + " + inner) * n,
            (inner + b" ? " + inner + b" : ") * n + inner,
            (b"[&] { return " * min(n, 60)) + inner + b"; }()" * min(n, 60),
            inner + b"[" * n + b"0" + b"]" * n,
        ][how]
        return text[: use.start()] + wrapped + text[use.end() :]
    few = min(n, 14)
    what = [
        b"{" * n + b"}" * n,
        b"if (true) " * n + b";",
        b"if (0) ; " + b"else if (0) ; " * n,
        b"std::vector<" * min(n, 500) + b"int" + b">" * min(n, 500) + b" v_;",
        b"for (int i = 0; i < 2; ++i) " * few + b"(void)" + name + b";",
        b"while (" + name + b".dim()) { " * few + name + b" += " + name + b"; }" * few,
        name + b".detach()" * n + b";",
        b"struct S_ { " * min(n, 300) + b"} s_; " * min(n, 300),
    ][how - 6]
    return put(text, at_statement(rng, text), b"\n" + what + b"\n")


def literal(rng, text):
    n = some(rng, 200000)
    what = rng.choice(
        [
            b"9" * n,
            b"0x" + b"f" * n,
            b'"' + b"a" * n + b'"',
            b"1e" + b"9" * n,
            b"'" + b"a" * min(n, 50) + b"'",
            b'"' + b"\\x" * min(n, 50) + b'"',
            b'R"(' + b")\n" * min(n, 100) + b')"',
            b"L'\\U0010ffff'",
            b"0b" + b"1" * n,
            b"x" * n,
            b"-9223372036854775808",
        ]
    )
    found = list(re.finditer(rb'\b\d[\w.]*|"[^"\n]*"', text))
    if not found:
        return text + what
    place = rng.choice(found)
    return text[: place.start()] + what + text[place.end() :]


def fill(rng, text, snippet):
    known = names(text)
    likely = [
        n
        for n in (b"loss", b"output", b"model", b"batch.data", b"optimizer", b"loader", b"total", b"batch.target")
        if n.split(b".")[0] in known
    ]
    for hole in (b"$a", b"$b"):
        pick = rng.choice(likely) if likely and rng.random() < 0.8 else rng.choice(known)
        snippet = snippet.replace(hole, pick)
    return snippet


def statement(rng, text):
    return put(text, at_statement(rng, text), b"\n" + fill(rng, text, rng.choice(STATEMENTS)) + b"\n")


def declaration(rng, text):
    what = rng.choice(DECLARATIONS)
    begins = [m.start() for m in re.finditer(rb"(?m)^", text)] or [0]
    return put(text, rng.choice([0, len(text), rng.choice(begins)]), what)


def calls(rng, text):
    """Functions that call each other: deep, wide, or in a circle."""
    n, times = some(rng, 400), rng.choice([1, 1, 2, 3])
    if times > 1:
        n = min(n, 30)
    head = b"#include <torch/torch.h>\ninline void f_0(torch::Tensor& t) { t += t; %s }\n" % rng.choice(
        [b"", b"t.backward();"]
    )
    if rng.random() < 0.3:
        head = (
            b"#include <torch/torch.h>\nvoid f_%d(torch::Tensor& t);\ninline void f_0(torch::Tensor& t) { f_%d(t); }\n"
            % (n, n)
        )
    for i in range(1, n + 1):
        head += b"inline void f_%d(torch::Tensor& t) { " % i + b"f_%d(t); " % (i - 1) * times + b"}\n"
    return head + put(text, at_statement(rng, text), fill(rng, text, b" f_%d($a); " % n))


def macro(rng, text):
    """A stretch of tokens becomes a macro's body."""
    parts = tokens(text)
    i = rng.randrange(len(parts) + 1)
    j = min(len(parts), i + some(rng, 60))
    body = b"".join(parts[i:j]).replace(b"\n", b" \\\n")
    use = rng.choice([b"M_", b"M_(x)"])
    define = b"#define " + use + b" " + body + b"\n"
    return define + b"".join(parts[:i]) + use + b"".join(parts[j:])


def conditional(rng, text):
    all_lines = text.splitlines(keepends=True) or [b""]
    i, j = sorted(rng.randrange(len(all_lines) + 1) for _ in range(2))
    first = rng.choice(
        [b"#if 0\n", b"#if 1\n", b"#ifdef NDEBUG\n", b"#if __has_include(<torch/torch.h>)\n", b"#if X == (\n"]
    )
    return (
        b"".join(all_lines[:i])
        + b"\n"
        + first
        + b"".join(all_lines[i:j])
        + b"\n"
        + rng.choice([b"#endif\n", b"#else\n#endif\n", b""])
        + b"".join(all_lines[j:])
    )


TEXT = [truncate, random_bytes, odd_bytes, line_ends, lines]
CXX = [
    token_edit,
    token_edit,
    token_edit,
    lines,
    lines,
    statement,
    statement,
    statement,
    declaration,
    rename,
    bracket,
    nest,
    nest,
    literal,
    calls,
    macro,
    conditional,
    truncate,
    random_bytes,
    odd_bytes,
    line_ends,
]


# JSON and YAML.

ODD_VALUES = [
    None,
    True,
    0,
    -1,
    1e300,
    2**70,
    "",
    "x",
    "/",
    "..",
    ".",
    "/dev/null",
    "a" * 5000,
    "\0",
    "ä",
    "-o",
    "--",
    "@x",
    "*",
    [],
    {},
    [[]],
    {"": {}},
    "${sourceDir}",
    "${presetName}/${presetName}",
    "c++ main.cpp",
    "c++ -o",
    "c++ '",
    ["c++"],
    ["-"],
    ["c++", "-include-pch"],
]


def places(value, path=()):
    found = [path]
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        found += places(one, path + (key,))
    return found


def json_structure(rng, text):
    try:
        value = json.loads(text)
        path = rng.choice(places(value))
    except (ValueError, RecursionError):  # nested by another mutation, beyond what Python reads
        return rng.choice(TEXT)(rng, text)
    if not path:
        return json.dumps(rng.choice(ODD_VALUES)).encode()
    parent = value
    for key in path[:-1]:
        parent = parent[key]
    how = rng.randrange(6)
    if how == 0:
        del parent[path[-1]]
    elif how == 1:
        old = parent[path[-1]]
        parent[path[-1]] = [old] * rng.randrange(4)
    elif how == 2 and isinstance(parent, dict):
        parent[rng.choice(["", "name", "inherits", "command", "arguments", "file", "x"])] = parent[path[-1]]
    elif how == 3 and isinstance(parent, list):
        parent += [parent[path[-1]]] * some(rng, 20)
    elif how == 4 and isinstance(parent[path[-1]], str):
        parent[path[-1]] = token_edit(rng, parent[path[-1]].encode("utf-8", "surrogatepass")).decode("utf-8", "replace")
    else:
        parent[path[-1]] = rng.choice(ODD_VALUES)
    return json.dumps(value).encode()


def json_text(rng, text):
    n = some(rng, 100000)
    deep = [b"[" * n + b"]" * n, b'{"":' * n + b"0" + b"}" * n, b"[" * n]
    return rng.choice(TEXT + [token_edit, bracket, lambda r, t: r.choice(deep)])(rng, text)


def yaml(rng, text):
    all_lines = text.splitlines(keepends=True) or [b""]
    i = rng.randrange(len(all_lines))
    key, colon, rest = all_lines[i].partition(b":")
    odd = rng.choice(
        [
            b"~",
            b"[]",
            b"{}",
            b"''",
            b'"',
            b"|",
            b"&a",
            b"*a",
            b"!!binary x",
            b"[" * some(rng, 3000),
            b"{a: " * some(rng, 2000),
            b"true",
            b"-1",
            b"%",
            b"@",
            b"0",
            b"99999999999999999999",
            b"x" * 5000,
            b"{value}",
            b"{",
            b"}",
            b"{accelerator}{",
            b"safe",
            b"note",
        ]
    )
    how = rng.randrange(8)
    if how == 0:
        all_lines[i] = key + b": " + odd + b"\n"
    elif how == 1:
        all_lines[i] = b" " * rng.randrange(1, 6) + all_lines[i]
    elif how == 2:
        all_lines[i] = b"\t" + all_lines[i]
    elif how == 3:
        all_lines[i] = (
            rng.choice([b"match", b"fact", b"edits", b"where", b"code", b"", b"replace", b"unless"]) + colon + rest
        )
    elif how == 4:
        all_lines.insert(i, rng.choice([b"---\n", b"...\n", b"%YAML 9\n", b"- \n", b"? a\n", b"# \n", b"<<: *a\n"]))
    else:
        return rng.choice(TEXT + [token_edit, token_edit, bracket])(rng, text)
    return b"".join(all_lines)


JSON = [json_structure, json_structure, json_structure, json_text]
YAML = [yaml]
CMAKE = TEXT + [token_edit, token_edit, token_edit, bracket, bracket]


def for_file(path):
    """The mutations that suit a file's name."""
    if path.endswith(".json"):
        return JSON
    if path.endswith((".yaml", ".clang-format")):
        return YAML
    if path.endswith((".txt", ".cmake")):
        return CMAKE
    return CXX
