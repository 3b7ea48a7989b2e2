"""Trains a transformer in the manner of real scripts: autocast, two micro-batches a step, clipping, a scheduler,
logging every third step, an evaluation every seventh, and a checkpoint every fifth."""

import tempfile

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.1, batch_first=True)
model = nn.Sequential(nn.Embedding(100, 64), nn.TransformerEncoder(layer, 2, enable_nested_tensor=False))
head = nn.Linear(64, 100)
model.to(device)
head.to(device)
optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)


def loss_of(tokens):
    """Returns the loss of a prediction of the next token."""
    with torch.autocast(device, dtype=torch.bfloat16):
        logits = head(model(tokens))
    return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1).float(), tokens[:, 1:].flatten())


for step in range(1000):
    for _ in range(2):
        loss = loss_of(torch.randint(0, 100, (4, 32), device=device)) / 2
        loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    optimizer.zero_grad()
    if step % 3 == 0:
        print("step", step, "loss", loss.item())
    if step % 7 == 0:
        model.eval()
        with torch.no_grad():
            print("validation", float(loss_of(torch.randint(0, 100, (4, 32), device=device))))
        model.train()
    if step % 5 == 0:
        with tempfile.TemporaryFile() as file:
            torch.save(model.state_dict(), file)
