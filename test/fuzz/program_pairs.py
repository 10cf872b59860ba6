"""Programs of two models: against each other, one taught by the other, one that follows the other."""

from program_text import Part


class Pairs:
    """Mixed into the grammar: a second model beside `net`, and steps of both."""

    def __init__(self, rng, number):
        super().__init__(rng, number)
        self.pair = self.pick((3, "adversary"), (2, "teacher"), (3, "follower"), (1, "decoder"))

    def critic(self):
        return []

    def second_of(self, name, inputs, outputs):
        """A small model without random numbers, and its type."""
        type = self.pick("torch::nn::Linear", "torch::nn::Sequential")
        if type == "torch::nn::Linear":
            return type, [Part(f"torch::nn::Linear {name}({inputs}, {outputs});")]
        return type, [Part(f"torch::nn::Sequential {name}(torch::nn::Linear({inputs}, 5), torch::nn::Tanh(), torch::nn::Linear(5, {outputs}));")]

    def optimizer(self):
        own, k = super().optimizer(), self.columns
        if self.pair == "adversary":
            self.second = "critic"
            type, made = self.second_of("critic", k, 1)
            rates = self.pick("torch::optim::SGDOptions(0.05)", "0.03")
            self.passed += [("critic", type), ("critic_optimizer", "torch::optim::SGD")]
            return own + made + [Part(f"torch::optim::SGD critic_optimizer(critic->parameters(), {rates});")]
        if self.pair == "decoder":
            self.second = "decoder"
            type, made = self.second_of("decoder", k, 4)
            self.passed += [("decoder", type), ("decoder_optimizer", "torch::optim::Adam")]
            return own + made + [Part("torch::optim::Adam decoder_optimizer(decoder->parameters(), torch::optim::AdamOptions(0.01).eps(1e-3));")]
        self.second = "teacher" if self.pair == "teacher" else "follower"
        type, made = self.second_of(self.second, 4, k)
        self.passed.append((self.second, type))
        if self.pair == "follower" and self.model_type in ("torch::nn::Linear", "torch::nn::Sequential", "Net", "std::shared_ptr<NetImpl>"):
            # Of the same shape, so that weights can be copied.
            declaration = next(part.head for part in self.made if "net" in part.head)
            self.passed[-1] = (self.second, self.model_type)
            made = [Part(declaration.replace(" net", " follower"))]
            self.same = True
            if self.chance(0.7):
                made += self.followed("copy_")
        if self.pair == "teacher" and self.chance(0.5):
            made.append(Part("for (auto& p : teacher->parameters()) p.set_requires_grad(false);"))
        return own + made + ([Part("teacher->eval();")] if self.pair == "teacher" and self.chance(0.5) else [])

    same = False

    def model(self):
        self.made = super().model()
        return self.made

    def followed(self, how):
        """The follower's weights from those of `net`."""
        name = self.name("to")
        change = {"copy_": self.pick("{t}.copy_({f});", "{t}.data().copy_({f}.data());"),
                  "average": self.pick("{t}.mul_(0.9).add_({f}, 0.1);", "{t}.copy_(0.8 * {t} + 0.2 * {f});", "{t}.lerp_({f}, 0.1);",
                                       "{t}.mul_(0.95);\n{t}.add_(0.05 * {f});")}[how]
        change = change.format(t=f"{name}[i]", f=f"from_{name}[i]").split("\n")
        return [Part("{", [Part("torch::NoGradGuard no_grad;"), Part(f"auto {name} = follower->parameters(), from_{name} = {self.parameters};"),
                           Part(f"for (size_t i = 0; i < {name}.size(); ++i) {{", [Part(line) for line in change])])]

    def loss(self):
        parts = super().loss()
        if self.pair == "adversary":
            self.has_own_update = True
            score = self.pick("-critic->forward(out).mean()", "torch::softplus(-critic->forward(out)).mean()",
                              "torch::binary_cross_entropy_with_logits(critic->forward(out), torch::ones({x.size(0), 1}))")
            score = score if self.family == "mean" else self.pick("-critic->forward(out).sum()", "torch::softplus(-critic->forward(out)).sum()")
            return self.pick((2, parts + [Part(f"loss = loss + 0.2 * {score};")]), [Part(f"auto loss = {score};")])
        if self.pair == "decoder":
            back = f"(decoder->forward(torch::tanh(out)) - x).pow(2).sum(1).{self.family}()"
            return parts + [Part(f"loss = loss + 0.5 * {back};")]
        model, goal = self.second, self.name("goal")
        seen = self.pick((2, [Part(f"auto {goal} = {model}->forward(x).detach();")]),
                         [Part(f"torch::Tensor {goal};"), Part("{", [Part("torch::NoGradGuard no_grad;"), Part(f"{goal} = {model}->forward(x);")])])
        if self.kind == "points":
            term = self.pick(f"-(torch::softmax({goal} / 2.0, 1) * torch::log_softmax(out / 2.0, 1)).sum(1).{self.family}()",
                             f"(torch::softmax(out, 1) - torch::softmax({goal}, 1)).pow(2).sum(1).{self.family}()",
                             f"torch::kl_div(torch::log_softmax(out, 1), torch::softmax({goal}, 1), at::Reduction::Sum)"
                             + (" / x.size(0)" if self.family == "mean" else ""))
        else:
            term = self.pick(f"(out - 0.9 * {goal}).pow(2).sum(1).{self.family}()",
                             f"torch::smooth_l1_loss(out, {goal}, at::Reduction::{'Mean' if self.family == 'mean' else 'Sum'})")
        return parts + seen + [Part(f"loss = loss + {self.constant()} * {term};")]

    def update(self):
        if self.pair == "teacher":
            return super().update()
        if self.pair == "decoder":
            return self.pick([Part("optimizer.zero_grad();"), Part("decoder_optimizer.zero_grad();"), Part("loss.backward();"),
                              Part("optimizer.step();"), Part("decoder_optimizer.step();")],
                             [Part("optimizer.zero_grad();"), Part("decoder_optimizer.zero_grad();"), Part("loss.backward();"),
                              Part("if (steps % 2 == 0) {", [Part("optimizer.step();")]), Part("else {", [Part("decoder_optimizer.step();")])])
        if self.pair == "follower":
            if not self.same:
                return super().update()
            every = self.rng.choice([2, 3])
            return super().update() + self.pick(
                [Part(f"if (steps % {every} == 0) {{", self.followed("copy_"))], self.followed("average"))
        return self.against()

    def against(self):
        """The critic's step, on what isn't passed on to `net`, then that of `net`."""
        real = {"curve": "y", "points": "torch::one_hot(y, 3).to(torch::kDouble)", "gaps": "y.narrow(1, 0, 1)"}[self.kind]
        n = self.name("d")
        fake = self.pick("critic->forward(out.detach())", f"critic->forward({self.call.format('x')}.detach())")
        noise = []
        if self.chance(0.4):
            noise = [Part(f"auto noise_{n} = torch::randn({{x.size(0), 4}});")]
            fake = f"critic->forward({self.call.format(f'noise_{n}')}.detach())"
        judged = self.pick(
            f"(torch::softplus(-real_{n}) + torch::softplus(fake_{n})).mean()", f"fake_{n}.mean() - real_{n}.mean()",
            f"torch::relu(1 - real_{n}).mean() + torch::relu(1 + fake_{n}).mean()",
            f"torch::binary_cross_entropy_with_logits(real_{n}, torch::full({{x.size(0), 1}}, 0.9)) + "
            f"torch::binary_cross_entropy_with_logits(fake_{n}, torch::zeros_like(fake_{n}))",
            f"0.5 * (torch::mse_loss(real_{n}, torch::ones_like(real_{n})) + fake_{n}.pow(2).mean())")
        clip = [Part("{", [Part("torch::NoGradGuard no_grad;"), Part("for (auto& p : critic->parameters()) p.clamp_(-0.3, 0.3);")])]
        critic = [*noise, Part(f"auto real_{n} = critic->forward({real}), fake_{n} = {fake};"), Part(f"auto judged_{n} = {judged};"),
                  Part("critic_optimizer.zero_grad();"), Part(f"judged_{n}.backward();"), Part("critic_optimizer.step();"),
                  *(clip if self.chance(0.25) else []), *([self.show("judged", f"judged_{n}.item<double>()")] if self.chance(0.5) else [])]
        own = [Part("optimizer.zero_grad();"), Part("loss.backward();"), Part("optimizer.step();")]
        # The critic's step changes its weights where they lie, so the graph of `loss` comes first.
        return self.pick((3, own + critic), own + [Part(f"if (steps % {self.rng.choice([1, 2])} == 0) {{", critic)])

    def ending(self):
        return super().ending() + [Part(f'std::printf("second %.10f\\n", weight_sum({self.second_prefix()}{self.second}->parameters()));')]

    def second_prefix(self):
        return self.prefix
