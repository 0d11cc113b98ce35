#pragma once

/// The part of LibTorch's C++ API that headlab uses. All of torch/torch.h (its data loaders, optimisers, a hundred
/// modules) costs each file that includes it more than twice the time to compile, precompiled or not.
#include <torch/autograd.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>
#include <torch/utils.h>
