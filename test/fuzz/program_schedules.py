"""When it is stepped and how far: accumulated gradients, learning rates, evaluation between the steps, files to go on from."""

from program_text import Part


class Schedules:
    """Mixed into the grammar: more of what `update()` and `decisions()` give."""

    flush = ()  # behind the loop over the loader: the step of the gradients that are left
    kept_best = False
    optimizer_access = "optimizer."

    def loop(self, name, body):
        return super().loop(name, body) + (list(self.flush) if name == "loader" else [])

    def update(self):
        if self.has_critic or self.chance(0.65):
            return super().update()
        clip = [Part(f"torch::nn::utils::clip_grad_norm_({self.parameters}, {self.pick('0.5', '1.0', '2.0')});")]
        clip = clip if self.chance(0.35) else []
        how = self.pick((3, "accumulate"), (3, "rate"), "closure", "by_hand")
        if how == "accumulate":
            return self.accumulated(clip)
        if how == "closure":
            return [Part("optimizer.step([&]() -> torch::Tensor {", [
                Part("optimizer.zero_grad();"), Part("loss.backward();"), Part("return loss;")], "});")]
        if how == "by_hand":
            rate, p = self.pick("0.05", "0.1 / (1 + steps)"), self.parameters
            return [Part(f"for (auto& p : {p}) p.mutable_grad() = torch::Tensor();"), Part("loss.backward();"), *clip, Part("{", [
                Part("torch::NoGradGuard no_grad;"), Part(f"for (auto& p : {p}) {{", [
                    Part(self.pick(f"p -= {rate} * p.grad();", f"p.add_(p.grad(), -({rate}));", f"p.sub_(p.grad() * ({rate}));"))])])]
        return [*self.rate(), Part("optimizer.zero_grad();"), Part("loss.backward();"), *clip, Part("optimizer.step();")]

    def accumulated(self, clip):
        k = self.rng.choice([2, 2, 3])
        step = [*clip, Part("optimizer.step();"), Part("optimizer.zero_grad();")]
        counter = self.pick("steps", "batches")
        if counter == "batches":
            self.flush = self.pick((2, ()), [Part(f"if (batches % {k} != 0) {{", step)])
        counted = f"({counter} + 1) % {k} == 0"
        backward = self.pick(f"(loss / {k}).backward();", f"loss = loss / {k};\nloss.backward();", f"(loss / {k}.0).backward();")
        if self.chance(0.3):  # cleared before instead of behind
            return [Part(f"if ({counter} % {k} == 0) optimizer.zero_grad();"), *map(Part, backward.split("\n")),
                    Part(f"if ({counted}) {{", [*clip, Part("optimizer.step();")])]
        return [*map(Part, backward.split("\n")), Part(f"if ({counted}) {{", step)]

    def rate(self):
        """A learning rate by the step."""
        value = self.pick("0.05 / (1 + 0.1 * steps)", "steps < 3 ? 0.02 * (steps + 1) / 3 : 0.02", "0.05 * std::pow(0.9, steps)",
                          "0.01 + 0.02 * (1 + std::cos(3.14159 * steps / 10))")
        name = self.name("rate")
        typed = f"static_cast<torch::optim::{self.optimizer_type}Options&>(group.options()).lr({name});"
        parts = [Part(f"const double {name} = {value};"), Part("for (auto& group : optimizer.param_groups()) {", [
            Part(self.pick(f"group.options().set_lr({name});", typed))])]
        return parts + ([self.show("rate", name)] if self.chance(0.3) else [])

    def step(self):
        body, declared, lasting = super().step()
        if "held_out" in self.formed and self.chance(0.2):
            every = self.rng.choice([2, 3])
            body.append(Part(f"if (steps % {every} == 0) {{", [*self.evaluation(), self.show("validated", "validated")]))
        return body, declared, lasting

    @property
    def savable(self):
        return self.model_type not in (None, "NetImpl")

    def decisions(self, numbers):
        if self.chance(0.7):
            return super().decisions(numbers)
        file = f'"state_{self.number_of_case}.pt"'
        choices = [self.decayed]
        if self.savable:
            choices += [lambda: [Part("if (epoch == 0) {", [
                Part(f"torch::save(net, {file});"), Part(f"torch::load(net, {file});")])],
                lambda: [Part(f"torch::save(net, {file});"), Part(f"torch::save(optimizer, {file[:-1]}.optimizer\");")],
                lambda: self.loaded_again(file)]
        if numbers:
            value = self.rng.choice(numbers)
            choices += [lambda: self.plateau(value)]
            if self.savable and self.chance(0.3):  # nothing else changes `best`
                return self.best_kept(value)
        return super().decisions(numbers) + self.rng.choice(choices)()

    def decayed(self):
        return [Part(f"if (epoch % 2 == {self.rng.choice([0, 1])}) {{", [
            Part("for (auto& group : optimizer.param_groups()) {", [
                Part("group.options().set_lr(group.options().get_lr() * 0.5);")])])]

    def loaded_again(self, file):
        """Model and optimizer from where they were saved."""
        optimizer = file[:-1] + '.optimizer"'
        return [Part("if (epoch == 0) {", [Part(f"torch::save(net, {file});"), Part(f"torch::save(optimizer, {optimizer});")]),
                Part("else {", [Part(f"torch::load(net, {file});"), Part(f"torch::load(optimizer, {optimizer});")])]

    def plateau(self, value):
        """Half the rate where it got no better."""
        return [Part(f"if (!history.empty() && {value} > history.back() + 1e-6) {{", [
            Part("for (auto& group : optimizer.param_groups()) group.options().set_lr(group.options().get_lr() * 0.5);")]),
            Part(f"history.push_back({value});")]

    def best_kept(self, value):
        """The best model goes into a file; after two epochs that were no better it ends."""
        self.kept_best = True
        name = self.name("value")
        return [Part(f"const double {name} = {value};"), Part(f"if ({name} < best - 1e-6) {{", [
            Part(f"best = {name};"), Part(f'torch::save(net, "best_{self.number_of_case}.pt");'),
            *([Part("improved = 0;")] if self.chance(0.5) else [])]),
            Part(f"else if (++improved >= {self.rng.choice([1, 2])}) {{", [Part("break;")])]

    def ending(self):
        parts = super().ending()
        if self.kept_best:
            parts.append(Part("if (best < 1e300) {", [
                Part(f'torch::load({self.prefix}net, "best_{self.number_of_case}.pt");'),
                Part('std::printf("best %.10f\\n", best);')]))
        if self.chance(0.2):
            parts.append(self.show("rate", f"{self.prefix}{self.optimizer_access}param_groups()[0].options().get_lr()"))
        return parts
