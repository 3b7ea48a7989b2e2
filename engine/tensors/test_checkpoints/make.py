"""Makes the checkpoints in this folder, as PyTorch 2.11 saves them: python3 make.py"""

import torch

DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex32",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e8m0fnu",
]

pattern = (torch.arange(12) % 2).view(4, 3)
tensors = {name: pattern.to(torch.float32).to(getattr(torch, name)) for name in DTYPES}
torch.save({name: tensor.t()[1:] for name, tensor in tensors.items()}, "views.pt")

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
optimizer = torch.optim.AdamW(net.parameters())
net(torch.randn(5, 3)).sum().backward()
optimizer.step()
with torch.no_grad():
    net[0].weight.copy_(torch.arange(12).view(4, 3))
torch.save(net.state_dict(), "state_dict.pt")
training = {"model": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "bias": net[0].bias}
torch.save(training, "training.pt", pickle_protocol=4)

torch.save(net, "module.pt")
torch.save({"a": torch.randn(3, dtype=torch.complex64).conj()}, "conjugate.pt")
torch.save({"a": torch.eye(3).to_sparse()}, "sparse.pt")
torch.save({"a": torch.quantize_per_tensor(torch.randn(3), 0.1, 0, torch.qint8)}, "quantised.pt")
torch.save({"a": torch.zeros(3)}, "old.pt", _use_new_zipfile_serialization=False)
