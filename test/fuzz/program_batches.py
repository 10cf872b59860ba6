"""Where batches come from: a loader of LibTorch's, slices and picks of tensors, lists of batches."""

from program_text import Part


class Batches:
    """Mixed into the grammar: `rows()` declares the data, `loop()` runs over their batches as `x` and `y`."""

    def rows(self, name, count, batch, phase, training):
        """Declares rows under `name` and remembers how batches of them are formed."""
        how = self.pick((5, "loader"), "slices", "picks", "split", "list", *(["draws"] if training else []))
        self.formed = {**getattr(self, "formed", {}), name: (how, count, batch)}
        dataset = {"curve": "Curve", "points": "Points", "gaps": "Gaps", "tokens": "Tokens"}[self.kind] + f"({count}, {phase})"
        if how == "loader":
            self.passed.append((name, None))
            return [self.loader(name, dataset, batch, training)]
        tensors = [f"{name}_x", f"{name}_y"]
        declared = [Part(f"auto {tensors[0]} = {dataset}.inputs(), {tensors[1]} = {dataset}.targets();")]
        if how != "list":
            self.passed += [(tensor, "torch::Tensor") for tensor in tensors]
            return declared
        self.passed.append((name, "std::vector<std::pair<torch::Tensor, torch::Tensor>>"))
        both = ", ".join(f"{tensor}.narrow(0, i, std::min<int64_t>({batch}, {count} - i))" for tensor in tensors)
        return declared + [
            Part(f"std::vector<std::pair<torch::Tensor, torch::Tensor>> {name};"),
            Part(f"for (int64_t i = 0; i < {count}; i += {batch}) {name}.{self.pick(f'emplace_back({both})', f'push_back({{{both}}})')};")]

    def loader(self, name, dataset, batch, training):
        sampler = "Sequential" if self.kind == "gaps" or self.chance(0.5) else "Random"
        mapped = f"torch::data::datasets::MapDataset<{dataset.split('(')[0]}, torch::data::transforms::Stack<>>"
        self.loader_types[name] = (f"std::unique_ptr<torch::data::StatelessDataLoader<{mapped},\n"
                                   f"    torch::data::samplers::{sampler}Sampler>>")
        options = self.pick(f"{batch}", f"torch::data::DataLoaderOptions({batch})",
                            f"torch::data::DataLoaderOptions().batch_size({batch})",
                            *([f"torch::data::DataLoaderOptions({batch}).drop_last(true)"] if training else []))
        return Part(f"auto {name} = torch::data::make_data_loader<torch::data::samplers::{sampler}Sampler>(\n"
                    f"    {dataset}.map(torch::data::transforms::Stack<>()), {options});")

    def loop(self, name, body):
        """The loop over the batches of `name`."""
        how, count, batch = self.formed[name]
        if how == "loader":
            return self.over_loader(name, body)
        if how == "list":
            return self.pick(
                lambda: [Part(f"for (auto [x, y] : {name}) {{", body)],
                lambda: [Part(f"for (const auto& pair : {name}) {{", [
                    Part("auto x = pair.first, y = pair.second;"), *body])],
                lambda: [Part(f"for (size_t i = 0; i < {name}.size(); ++i) {{", [
                    Part(f"auto x = {name}[i].first;"), Part(f"auto y = {name}[i].second;"), *body])])
        size = self.pick(f"{name}_x.size(0)", f"{name}_y.size(0)", str(count))
        if how == "split":
            parts = self.pick(f"split({batch})", f"split({batch}, 0)", f"chunk({max(2, count // batch)})")
            return [Part(f"auto {name}_xs = {name}_x.{parts}, {name}_ys = {name}_y.{parts};"),
                    Part(f"for (size_t i = 0; i < {name}_xs.size(); ++i) {{", [
                        Part(f"auto x = {name}_xs[i], y = {name}_ys[i];"), *body])]
        if how == "slices":
            end = f"std::min<int64_t>(at + {batch}, {size})"
            part = self.pick(f"slice(0, at, {end})", f"narrow(0, at, {end} - at)",
                             f"index({{torch::indexing::Slice(at, {end})}})")
            return [Part(f"for (int64_t at = 0; at < {size}; at += {batch}) {{", [
                Part(f"auto x = {name}_x.{part}, y = {name}_y.{part};"), *body])]
        take = self.pick("{}.index_select(0, picked)", "{}.index({{picked}})")
        names = Part(f"auto x = {take.format(name + '_x')}, y = {take.format(name + '_y')};")
        if how == "draws":
            return [Part(f"for (int draw = 0; draw < {max(1, count // batch)}; ++draw) {{", [
                Part(f"auto picked = torch::randint({count}, {{{batch}}}, torch::kLong);"), names, *body])]
        order = self.pick(f"torch::randperm({size})", f"torch::randperm({size}, torch::kLong)", f"torch::arange({size}).flip(0)")
        return [Part(f"auto {name}_order = {order};"), Part(f"for (int64_t at = 0; at < {size}; at += {batch}) {{", [
            Part(f"auto picked = {name}_order.slice(0, at, std::min<int64_t>(at + {batch}, {size}));"), names, *body])]

    def over_loader(self, name, body):
        head = f"for ({self.pick('auto&', 'auto&', 'auto', 'const auto&', 'auto&&')} batch : *{name}) {{"
        names = self.pick([Part("auto x = batch.data;"), Part("auto y = batch.target;")],
                          [Part("auto x = batch.data, y = batch.target;")],
                          [Part("auto x = batch.data.to(torch::kCPU);"), Part("const auto y = batch.target;")])
        if self.chance(0.12):
            return [Part(f"for (auto it = {name}->begin(); it != {name}->end(); ++it) {{", [
                Part("auto& batch = *it;"), *names, *body])]
        return [Part(head, names + body)]
