"""Where a program's state lives and where its steps stand: namespace scope, a trainer's members, callbacks."""

import re

from program_text import Part


class Places:
    """Mixed into the grammar: more of what `loop()` and `arranged()` give."""

    def loop(self, name, body):
        text = "\n".join(line for part in body for line in part.lines(frozenset()))
        if "continue;" in text or self.chance(0.85):
            return super().loop(name, body)
        head = "[&](torch::Tensor x, torch::Tensor y) {"
        if self.formed[name][0] == "loader" and self.chance(0.5):
            each = self.name("each_batch")
            self.parts.append(Part(f"template <typename Loader, typename Step>\nvoid {each}(Loader& loader, Step&& step) {{", [
                Part(self.pick("for (auto& batch : loader) step(batch.data, batch.target);",
                               "for (auto& batch : loader) {\n  step(batch.data, batch.target);\n}"))]))
            return [Part(f"{each}(*{name}, {head}", body, "});")]
        step = self.name("on_batch")
        return [Part(f"auto {step} = {head}", body, "};"), *super().loop(name, [Part(f"{step}(x, y);")])]

    def arranged(self, setup, models, state, epoch, numbers, after):
        where = self.pick((6, None), (2, "namespace"), (3, "trainer"))
        if where is None:
            return super().arranged(setup, models, state, epoch, numbers, after)
        self.prefix = ""
        declared, statements = [], []
        for part in setup:
            found = self.declared(part)
            declared += found
            statements += [] if found else [part]
        declared += [(type, name, initial) for name, type, initial in state]
        declared += [("double", "best", "std::numeric_limits<double>::max()"), ("std::vector<double>", "history", "{}")]
        epoch, evaluate = self.evaluated_apart(epoch)
        decide = self.decisions(["result"]) + after
        result = self.rng.choice(numbers) if numbers else "static_cast<double>(seen)"
        train = Part("double train_epoch() {", epoch + [Part(f"return {result};")])
        fit = [Part(f"for (int epoch = 0; epoch < {self.epochs}; ++epoch) {{", [
            Part("const double result = train_epoch();"), *decide])]
        made, declared = self.made_later(declared, [train, *fit, *evaluate, *statements])
        if where == "namespace":
            static = self.pick("", "static ")
            self.parts += [Part(f"{static}{type} {name} = {initial};" if initial else f"{static}{type} {name};")
                           for type, name, initial in declared]
            self.parts += [*evaluate, train]
            return made + statements + fit
        members = [Part(f"{type} {name} = {initial};" if initial else f"{type} {name};") for type, name, initial in declared]
        methods = [Part("Trainer() {", made + statements)] if made or statements else []
        access = self.pick(" public:", "")
        self.parts.append(Part("class Trainer {\n public:" if access else "struct Trainer {", [
            *methods, Part("void fit() {", fit), *evaluate, train, *members], "};"))
        owned = self.chance(0.25)
        self.prefix = "trainer->" if owned else "trainer."
        return [Part("auto trainer = std::make_unique<Trainer>();" if owned else "Trainer trainer;"),
                Part(f"{self.prefix}fit();"), Part(f"auto& history = {self.prefix}history;"), Part(f"auto& best = {self.prefix}best;")]

    def evaluated_apart(self, epoch):
        """The evaluation behind an epoch as a function of its own: it needs nothing of the epoch's."""
        heads = [part.head for part in epoch]
        if "double validated = 0;" not in heads or self.chance(0.3):
            return epoch, []
        at = heads.index("double validated = 0;")
        body = [*epoch[at:at + 2], Part("return validated;")]
        return [*epoch[:at], Part("const double validated = evaluate();"), *epoch[at + 2:]], [Part("double evaluate() {", body)]

    def declared(self, part):
        """What a statement declares: [(type, name, initial value)]; nothing for other statements."""
        head = part.head
        if part.parts is not None or head.startswith("for "):
            return []
        if match := re.fullmatch(r"auto (\w+_x) = (.*\.inputs\(\)), (\w+_y) = (.*);", head):
            return [("torch::Tensor", match[1], match[2]), ("torch::Tensor", match[3], match[4])]
        if match := re.fullmatch(r"auto (\w+) = std::make_shared<(\w+)>\((.*)\);", head):
            return [(f"std::shared_ptr<{match[2]}>", match[1], head.split(" = ", 1)[1][:-1])]
        if match := re.fullmatch(r"auto (\w+) = (torch::data::make_data_loader<.*);", head, re.DOTALL):
            return [(self.loader_types[match[1]], match[1], match[2])]
        if match := re.fullmatch(r"(const )?auto (\w+) = (torch::.*);", head):
            return [(f"{match[1] or ''}torch::Tensor", match[2], match[3])]
        if match := re.fullmatch(r"([\w:]+(?:<.*>)?) (\w+) = (.*);", head):
            return [match.groups()]
        if match := re.fullmatch(r"([\w:]+(?:<.*>)?) (\w+);", head):
            return [(match[1], match[2], None)]
        if match := re.fullmatch(r"([\w:]+) (\w+)\((.*)\);", head, re.DOTALL):
            return [(match[1], match[2], f"{match[1]}({match[3]})")]
        return []

    def made_later(self, declared, users):
        """Loaders and optimizers behind pointers, and models that are made in the constructor or in `run()`."""
        made, kept = [], []
        late = self.chance(0.5)
        scheduled = any(name == "scheduler" for _, name, _ in declared)
        for type, name, initial in declared:
            # What is a member beside them may not be made of what isn't there yet.
            if not late or name not in ("loader", "held_out", *([] if scheduled else ["net", "optimizer"])):
                kept.append((type, name, initial))
            elif name == "optimizer":
                base = self.pick(type, "torch::optim::Optimizer")
                made.append(Part(f"optimizer = std::make_unique<{type}>({initial[len(type) + 1:-1]});"))
                kept.append((f"std::unique_ptr<{base}>", name, None))
                self.optimizer_access = "optimizer->"
                for sub in (sub for part in users for sub in part.all()):
                    sub.head = re.sub(r"\boptimizer\.(?=\w+\()", "optimizer->", sub.head)
                    sub.head = re.sub(r"(torch::(?:save|load)\()optimizer\b", r"\1*optimizer", sub.head)
            elif type.startswith("torch::nn::") or type == "Net":
                made.append(Part(f"net = {initial or 'Net()'};"))
                kept.append((type, name, "nullptr"))
            elif "_ptr<" in type:
                made.append(Part(f"{name} = {initial};"))
                kept.append((type, name, None))
            else:
                kept.append((type, name, initial))
        return made, kept
