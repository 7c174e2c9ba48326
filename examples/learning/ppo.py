"""Proximal policy optimization (Schulman et al. 2017) in plain PyTorch, for vector environments.

`learn_balance.py` and `learn_walk.py` use it.
"""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn


@dataclass(frozen=True)
class Options:
    """Parameters of the method; `horizon` is the number of steps of each environment per update."""

    horizon: int = 24
    epochs: int = 5
    batches: int = 4
    rate: float = 1e-3
    discount: float = 0.99
    trace: float = 0.95
    clip: float = 0.2
    entropy: float = 0.005
    target: float = 0.01
    hidden: tuple[int, ...] = (128, 128)
    spread: float = 0.6


def network(sizes: list[int]) -> nn.Sequential:
    """Return linear layers of the given sizes, with smooth activations between them."""
    layers: list[nn.Module] = []
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b), nn.ELU()]
    return nn.Sequential(*layers[:-1])


class Policy(nn.Module):
    """Gaussian policy and value function of scaled observations."""

    def __init__(self, observations: int, actions: int, options: Options) -> None:
        super().__init__()
        self.mean = network([observations, *options.hidden, actions])
        self.value = network([observations, *options.hidden, 1])
        with torch.no_grad():
            self.mean[-1].weight.mul_(0.01)
        self.log_spread = nn.Parameter(torch.full((actions,), float(np.log(options.spread))))
        self.register_buffer("center", torch.zeros(observations))
        self.register_buffer("width", torch.ones(observations))
        self.register_buffer("seen", torch.tensor(1e-4))

    def scaled(self, x: torch.Tensor) -> torch.Tensor:
        return ((x - self.center) / self.width.sqrt().clamp(min=1e-3)).clamp(-10.0, 10.0)

    def learn_scale(self, x: torch.Tensor) -> None:
        """Update the running mean and variance with new observations."""
        count, total = len(x), self.seen + len(x)
        mean, variance = x.mean(0), x.var(0, unbiased=False)
        away = mean - self.center
        self.width.copy_(
            (self.width * self.seen + variance * count + away**2 * self.seen * count / total)
            / total
        )
        self.center.add_(away * count / total)
        self.seen.copy_(total)

    def distribution(self, x: torch.Tensor) -> torch.distributions.Normal:
        return torch.distributions.Normal(self.mean(self.scaled(x)), self.log_spread.exp())

    def act(self, observations: np.ndarray) -> np.ndarray:
        """Return the mean actions (n, actions) of the policy, without noise."""
        with torch.no_grad():
            seen = torch.as_tensor(observations, device=self.center.device)
            return self.mean(self.scaled(seen)).cpu().numpy()


def train(
    env: Any,
    updates: int,
    options: Options,
    *,
    seed: int = 0,
    seconds: float = np.inf,
    device: str = "cpu",
    told: Callable[[int, float, float, float], None] = lambda *_: None,
) -> tuple[Policy, list[tuple[float, float]]]:
    """Train a policy; return it, and the learning curve (seconds, mean reward per step).

    The networks are on `device`, a PyTorch device. The environment exchanges NumPy arrays.
    """
    torch.manual_seed(seed)
    n, sizes = env.num_envs, (env.task.observations, env.task.actions)
    policy, begun, curve = Policy(*sizes, options).to(device), time.monotonic(), []
    optimizer, rate = torch.optim.Adam(policy.parameters(), lr=options.rate), options.rate
    here = partial(torch.as_tensor, device=device)
    x, shape = here(env.reset(seed=seed)[0]), (options.horizon, n)
    kept = [torch.zeros(*shape, *more) for more in ((sizes[0],), (sizes[1],), (), (), (), ())]
    X, A, logs, values, rewards, ends = (a.to(device) for a in kept)
    for k in range(updates):
        earned = np.zeros(options.horizon)
        with torch.no_grad():
            for i in range(options.horizon):
                policy.learn_scale(x)
                chances = policy.distribution(x)
                action = chances.sample()
                X[i], A[i], logs[i] = x, action, chances.log_prob(action).sum(-1)
                values[i] = policy.value(policy.scaled(x)).squeeze(-1)
                seen, reward, failed, cut, info = env.step(action.cpu().numpy())
                gained, earned[i] = here(reward, dtype=torch.float32), np.mean(reward)
                if cut.any():  # add the value of the final state
                    last = here(info["final_obs"])
                    later = policy.value(policy.scaled(last)).squeeze(-1)
                    gained = gained + options.discount * later * here(cut)
                rewards[i], ends[i] = gained, here(failed | cut, dtype=torch.float32)
                x = here(seen)
            next_value = policy.value(policy.scaled(x)).squeeze(-1)
            advantage, advantages = torch.zeros_like(next_value), torch.zeros_like(rewards)
            for i in reversed(range(options.horizon)):
                going = options.discount * (1.0 - ends[i])
                error = rewards[i] + going * next_value - values[i]
                advantage = error + going * options.trace * advantage
                advantages[i], next_value = advantage, values[i]
        goals = (advantages + values).reshape(-1)
        flat = [part.reshape(-1, *part.shape[2:]) for part in (X, A, logs, advantages)]
        rate = _improve(policy, optimizer, flat, goals, options, rate)
        spent = time.monotonic() - begun
        curve.append((spent, float(earned.mean())))
        told(k, *curve[-1], float(ends.mean()))
        if spent > seconds:
            break
    return policy, curve


def _improve(
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    flat: list[torch.Tensor],
    goals: torch.Tensor,
    options: Options,
    rate: float,
) -> float:
    """Take gradient steps on the clipped objective; return the adapted learning rate."""
    X, A, logs, advantages = flat
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    size = len(X) // options.batches
    for _ in range(options.epochs):
        order = torch.randperm(len(X), device=X.device)
        for j in range(options.batches):
            some = order[j * size : (j + 1) * size]
            chances = policy.distribution(X[some])
            now = chances.log_prob(A[some]).sum(-1)
            ratio = (now - logs[some]).exp()
            bounded = ratio.clamp(1.0 - options.clip, 1.0 + options.clip)
            gain = torch.min(ratio * advantages[some], bounded * advantages[some]).mean()
            missed = (policy.value(policy.scaled(X[some])).squeeze(-1) - goals[some]).pow(2).mean()
            loss = missed - gain - options.entropy * chances.entropy().sum(-1).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
            optimizer.step()
            change = float((logs[some] - now.detach()).mean().abs())
            rate = rate / 1.1 if change > 2.0 * options.target else rate
            rate = rate * 1.1 if change < 0.5 * options.target else rate
            rate = min(max(rate, 1e-5), 5e-3)
            for group in optimizer.param_groups:
                group["lr"] = rate
    return rate
