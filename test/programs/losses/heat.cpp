// The heat equation u_t = 0.1 u_xx on [0, 1] x [0, 1] from u(x, 0) = sin(pi x): collocation points and those of the start
// are drawn once, as most such programs do.
#include <torch/torch.h>

#include <cmath>
#include <cstdio>

struct NetImpl : torch::nn::Module {
  NetImpl() {
    first = register_module("first", torch::nn::Linear(2, 16));
    last = register_module("last", torch::nn::Linear(16, 1));
  }
  torch::Tensor forward(const torch::Tensor &x, const torch::Tensor &t) {
    return last(torch::tanh(first(torch::cat({x, t}, 1))));
  }
  torch::nn::Linear first{nullptr}, last{nullptr};
};
TORCH_MODULE(Net);

torch::Tensor derivative(const torch::Tensor &y, const torch::Tensor &x) {
  return torch::autograd::grad({y}, {x}, {torch::ones_like(y)}, /*retain_graph=*/true, /*create_graph=*/true)[0];
}

torch::Tensor residual(Net &net, const torch::Tensor &x, const torch::Tensor &t) {
  auto u = net->forward(x, t);
  return derivative(u, t) - 0.1 * derivative(derivative(u, x), x);
}

int main() {
  torch::manual_seed(3);
  torch::set_default_dtype(caffe2::TypeMeta::Make<double>());
  auto x = torch::rand({101, 1}).requires_grad_(true);
  auto t = torch::rand({101, 1}).requires_grad_(true);
  auto x_start = torch::rand({17, 1}), t_start = torch::zeros({17, 1});
  auto u_start = torch::sin(M_PI * x_start);
  Net net;
  torch::optim::Adam optimizer(net->parameters(), 0.01);
  for (int epoch = 1; epoch <= 30; ++epoch) {
    optimizer.zero_grad();
    auto equation = residual(net, x, t).pow(2).mean();
    auto start = torch::mse_loss(net->forward(x_start, t_start), u_start);
    auto loss = equation + 10 * start;
    loss.backward();
    optimizer.step();
    if (epoch % 10 == 0)
      std::printf("%d: %.6f = %.6f + 10 * %.6f\n", epoch, loss.item<double>(), equation.item<double>(),
                  start.item<double>());
  }
  torch::save(net, "heat.pt");
}
