"""Sample expressions in C++: the samples are Python over torch, and what the tool reads is the same in LibTorch's words."""
import ast
import re

LISTS = {"chunk", "split", "split_with_sizes", "tensor_split", "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes", "vsplit",
         "dsplit", "unbind", "where", "broadcast_tensors"}  # return vectors, not tuples
PLAIN = {"one_hot", "linear", "bilinear", "pairwise", "embedding_plain"}  # functionals without options
CAMEL = {"mse_loss": "MSELoss", "l1_loss": "L1Loss", "nll_loss": "NLLLoss", "kl_div": "KLDiv", "glu": "GLU", "elu": "ELU",
         "celu": "CELU", "selu": "SELU", "gelu": "GELU", "relu": "ReLU", "relu6": "ReLU6", "leaky_relu": "LeakyReLU",
         "rrelu": "RReLU", "prelu": "PReLU", "lp_pool1d": "LPPool1d", "lp_pool2d": "LPPool2d", "lp_pool3d": "LPPool3d",
         "smooth_l1_loss": "SmoothL1Loss", "poisson_nll_loss": "PoissonNLLLoss", "ctc_loss": "CTCLoss",
         "max_pool1d_with_indices": "MaxPool1d", "max_pool2d_with_indices": "MaxPool2d", "max_pool3d_with_indices": "MaxPool3d",
         "adaptive_max_pool1d_with_indices": "AdaptiveMaxPool1d", "adaptive_max_pool2d_with_indices": "AdaptiveMaxPool2d",
         "adaptive_max_pool3d_with_indices": "AdaptiveMaxPool3d",
         "multilabel_margin_loss": "MultilabelMarginLoss", "multilabel_soft_margin_loss": "MultilabelSoftMarginLoss"}
ENUMS = {"sum": "kSum", "mean": "kMean", "none": "kNone", "batchmean": "kBatchMean", "nearest": "kNearest",
         "bilinear": "kBilinear", "constant": "kConstant", "reflect": "kReflect"}


# Overloads that a literal alone doesn't choose between.
CHOSEN = {"sum": "torch::IntArrayRef(%s)", "mean": "torch::IntArrayRef(%s)", "nansum": "torch::IntArrayRef(%s)",
          "logsumexp": "torch::IntArrayRef(%s)", "argsort": "int64_t(%s)", "count_nonzero": "std::optional<int64_t>(%s)",
          "size": "std::vector<int64_t>(%s)"}


def chosen(name, node):
    listed = isinstance(node, ast.List) and len(node.elts) > 1
    number = isinstance(node, ast.Constant) and isinstance(node.value, int)
    wanted = listed if name not in ("argsort", "count_nonzero") else number
    return CHOSEN[name] % ("%s" % cpp(node)) if name in CHOSEN and wanted else cpp(node)


def camel(name):
    return CAMEL.get(name) or "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def constant(value):
    if value is None:
        return "{}"
    if isinstance(value, bool):
        return str(value).lower()
    return '"%s"' % value if isinstance(value, str) else repr(value)


def literal(node):
    """Whether an argument is an option: a number, a list of them, a constant."""
    if isinstance(node, ast.UnaryOp):
        return literal(node.operand)
    return isinstance(node, ast.Constant) or (isinstance(node, ast.List) and all(map(literal, node.elts)))


def options(name, args, keywords):
    text = "%s(%s)" % (name, ", ".join(map(cpp, args)))
    for keyword in keywords:
        value = keyword.value
        named = isinstance(value, ast.Constant) and ENUMS.get(value.value)
        text += ".%s(%s)" % (keyword.arg, "torch::" + named if named else chosen(keyword.arg, value))
    return text


def call(node):
    target = node.func
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "F":
        tensors = [a for a in node.args if not literal(a)]
        rest = [a for a in node.args if literal(a)]
        args = [cpp(a) for a in (node.args if target.attr in PLAIN else tensors)]
        if (rest or node.keywords) and target.attr not in PLAIN:
            args.append(options("F::%sFuncOptions" % camel(target.attr), rest, node.keywords))
        return "F::%s(%s)" % (target.attr, ", ".join(args))
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "nn":
        module = "torch::nn::" + target.attr
        if target.attr == "Sequential":
            return "%s(%s)" % (module, ", ".join(map(cpp, node.args)))
        if not node.args and not node.keywords:
            return module + "()"
        return "%s(%s)" % (module, options(module + "Options", node.args, node.keywords))
    if node.keywords:
        raise ValueError("only options have keywords: " + ast.unparse(node))
    name = target.attr if isinstance(target, ast.Attribute) else ""
    args = [chosen(name, a) for a in node.args]
    if name == "tensordot":  # the dimensions of each side are arguments of their own
        args[2:] = map(cpp, node.args[2].elts)
    if name == "broadcast_tensors":  # a list in C++
        args = ["{%s}" % ", ".join(args)]
    if name == "rfftfreq":
        args.append("torch::kFloat")
    callee = cpp(target)
    return "%s(%s)" % (callee + "->forward" if callee.startswith("torch::nn::Sequential(") else callee, ", ".join(args))


def cpp(node):
    if isinstance(node, str):
        return cpp(ast.parse(node, mode="eval").body)
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Constant):
        return constant(node.value)
    if isinstance(node, ast.UnaryOp):
        return {ast.USub: "-", ast.Not: "!", ast.Invert: "~"}[type(node.op)] + cpp(node.operand)
    if isinstance(node, ast.BinOp):
        operator = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}[type(node.op)]
        return "(%s %s %s)" % (cpp(node.left), operator, cpp(node.right))
    if isinstance(node, ast.List):
        return "{%s}" % ", ".join(map(cpp, node.elts))
    if isinstance(node, ast.Tuple):
        return "std::make_tuple(%s)" % ", ".join(map(cpp, node.elts))
    if isinstance(node, ast.Subscript):
        function = node.value.func.attr if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute) else ""
        index = cpp(node.slice)
        return "%s[%s]" % (cpp(node.value), index) if function in LISTS else "std::get<%s>(%s)" % (index, cpp(node.value))
    if isinstance(node, ast.Attribute):
        base = cpp(node.value)
        if base == "torch" and re.fullmatch(r"(u?int|float|complex)\d+", node.attr):
            return "torch::k" + node.attr.capitalize()
        if base == "torch::linalg":
            return "torch::linalg_" + node.attr
        return base + ("::" if base in ("torch", "torch::fft", "torch::special") else ".") + node.attr
    if isinstance(node, ast.Call):
        return call(node)
    raise ValueError("not in C++: " + ast.dump(node))
