#include "exchange/dtensor_check.h"

namespace cleave::exchange {

/// Styles apply to modules, not to the code between them. Code that reads the size of a part, or sums over one,
/// silently computes something else. So the module runs once before it is split, and once after.
const std::string_view kDtensorCheck = R"(
def _tied(model):
    """Groups of names of one parameter."""
    names = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    return [group for group in names.values() if len(group) > 1]


def _tie_again(model, groups):
    """Ties parameters again, because each split module has its own now."""
    for names in groups:
        held = [model.get_parameter(name) for name in names]
        split = next((parameter for parameter in held if hasattr(parameter, "to_local")), held[0])
        for name in names:
            owner, _, leaf = name.rpartition(".")
            setattr(model.get_submodule(owner), leaf, split)


def _example(model, device):
    generator = torch.Generator().manual_seed(0)
    inputs = {}
    for name, (dtype, shape) in _INPUTS.items():
        floating = getattr(torch, dtype).is_floating_point
        made = torch.randn(shape, generator=generator) if floating else torch.randint(0, 2, shape, generator=generator)
        inputs[name] = made.to(device, getattr(torch, dtype))
    known = inspect.signature(model.forward).parameters
    return ((), inputs) if all(name in known for name in inputs) else (tuple(inputs.values()), {})


class _NothingDropped(TorchFunctionMode):
    """Disables dropout, which depends on the split."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        if "dropout" in name and args:
            return args[0]
        if name == "scaled_dot_product_attention":
            args, kwargs = args[:4], {**(kwargs or {}), "dropout_p": 0.0}
        return function(*args, **(kwargs or {}))


def _observed(model, call, gradients):
    """Outputs, and gradients of their sum with random weights, by name: in eval mode, and in the current mode."""
    found = _observed_in(model, call, gradients, True)
    if any(module.training for module in model.modules()):
        found |= {f"in training mode {name}": x for name, x in _observed_in(model, call, gradients, False).items()}
    return found


def _observed_in(model, call, gradients, eval_mode):
    full = lambda x: x.full_tensor() if hasattr(x, "full_tensor") else x
    buffers = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    modes = [(module, module.training) for module in model.modules()]
    kept = [(parameter, parameter.grad) for parameter in model.parameters()]
    for parameter, _ in kept:
        parameter.grad = None
    try:
        if eval_mode:
            model.eval()
        with torch.set_grad_enabled(gradients), torch.random.fork_rng([]), _NothingDropped():
            torch.manual_seed(0)
            found = {f"output {at}": full(x) for at, x in enumerate(tree_leaves(model(*call[0], **call[1])))
                     if isinstance(x, torch.Tensor)}
            generator, total = torch.Generator().manual_seed(1), 0
            for x in found.values():
                if x.requires_grad:
                    total = total + (x * torch.randn(x.shape, generator=generator).to(x.device, x.dtype)).sum().float()
            if isinstance(total, torch.Tensor):
                total.backward()
            for name, parameter in model.named_parameters():
                if parameter.grad is not None:
                    found[f"the gradient of {name}"] = full(parameter.grad).clone()
        return {name: x.detach().clone() for name, x in found.items()}
    finally:
        for buffer, before in buffers:
            buffer.data.copy_(before)
        for module, training in modes:
            module.training = training
        for parameter, gradient in kept:
            parameter.grad = gradient


def _difference(whole, now):
    # A gradient that is nothing but rounding, as of a key's bias, is held to the others' size.
    largest = max((float(x.abs().max()) for name, x in whole.items() if "gradient" in name and x.numel()), default=0.0)
    for name, expected in whole.items():
        if name not in now or now[name].shape != expected.shape:
            return f"{name} is {list(now[name].shape) if name in now else 'missing'}, not {list(expected.shape)}"
        if expected.is_floating_point() and expected.numel():
            unit = {torch.float64: 2.0**-40, torch.float32: 2.0**-12}.get(expected.dtype, 2.0**-4)
            size = float(expected.double().square().mean().sqrt() + expected.double().abs().max())
            size = max(size, largest / 100) if "gradient" in name else size
            apart = (now[name].double() - expected.double()).abs().max()
            if not bool(apart <= unit * size):
                return f"{name} differs by {float(apart):.2g}"
    return None


def _call_before(model, mesh, example, gradients):
    """The call, and what the whole module computes."""
    for tensor in [*model.parameters(), *model.buffers()]:
        dist.broadcast(tensor.data, group=mesh.get_group(), group_src=0)  # all ranks begin alike
    call = example or _example(model, next(model.parameters()).device)
    try:
        return call, _observed(model, call, gradients)
    except Exception as error:  # whatever the module's own code raises
        raise ValueError(f"{type(model).__name__} cannot be called with inputs that are made up "
                         f"({error}): give example=(args, kwargs) of a call.") from error


def _compare_after(model, before, gradients):
    call, whole = before
    try:
        difference = _difference(whole, _observed(model, call, gradients))
    except Exception as error:  # whatever the module's own code raises
        difference = f"{type(error).__name__}: {error}"
    if difference:
        raise ValueError(f"{type(model).__name__} computes something else when it is split so: {difference}. "
                         "Code that reads a size of a part, or computes over the parts, does not know that they are "
                         "parts.")

)";

}  // namespace cleave::exchange
