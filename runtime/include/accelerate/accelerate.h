#pragma once

/// Data-parallel training of ordinary LibTorch programs. One include, one namespace:
///
///   accelerate::Accelerator accelerator;
///   torch::Device device = accelerator.device();
///   auto loader = accelerate::make_data_loader(std::move(dataset), 64);
///   accelerator.prepare(model, optimizer, loader);
///   ...
///   accelerator.backward(loss);
///
/// Started by itself the program computes exactly what it computed before. Started by a launcher
/// (accelerate-cpp launch, torchrun, mpirun) it trains on all ranks, with the global batch kept.

#include <accelerate/accelerator.h>
#include <accelerate/data.h>
#include <accelerate/launchers.h>
#include <accelerate/local_sgd.h>
#include <accelerate/logging.h>
#include <accelerate/memory.h>
#include <accelerate/safetensors.h>
#include <accelerate/version.h>
