"""Hand-written loops that turn uniform draws into Markov sequences. Draws are made outside, from a seed."""

from landscape.kernels.compile import kernel


@kernel
def two_states(uniform, initial, p, q, out):
    """Fill ``out[i, :]`` with a binary path: a draw u switches 0 to 1 if u < p and 1 to 0 if u < q."""
    for i in range(uniform.shape[0]):
        state = initial[i]
        out[i, 0] = state
        for t in range(uniform.shape[1]):
            if state == 0:
                state = 1 if uniform[i, t] < p else 0
            else:
                state = 0 if uniform[i, t] < q else 1
            out[i, t + 1] = state


@kernel
def switching(uniform, initial, states, p, out):
    """Fill ``out[i, :]`` with a path that leaves its state if u < p, for a state picked uniformly by u / p."""
    for i in range(uniform.shape[0]):
        state = initial[i]
        out[i, 0] = state
        for t in range(uniform.shape[1]):
            u = uniform[i, t]
            if u < p:
                step = min(int(u / p * (states - 1)), states - 2)
                state = (state + 1 + step) % states
            out[i, t + 1] = state
