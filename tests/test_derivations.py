"""The derivations hold, no sign in them can be wrong unnoticed, and their text is reproducible."""

import hashlib
import json

import pytest
import sympy
from conftest import ROOT
from mutants import equivalent, sign_mutants

from landscape import derive
from landscape.symbolic import render, symbols
from landscape.symbolic.steps import entries_of


def test_every_step_holds(chapters):
    assert derive.failed_steps(chapters) == []
    assert sum(len(chapter.steps) for chapter in chapters.values()) >= 50


def test_what_is_committed_is_what_derive_writes(chapters):
    assert derive.differing(ROOT, derive.all_files(chapters)) == []


def test_every_name_has_one_set_of_assumptions():
    found = {}
    for symbol in vars(symbols).values():
        if isinstance(symbol, sympy.Symbol):
            assert found.setdefault(symbol.name, symbol) == symbol, symbol.name


def test_every_chapter_is_checked_on_both_sides_of_the_threshold(chapters):
    from landscape.symbolic.limits import integrated_starts

    cases = integrated_starts()
    assert {case["target"] for case in cases} == {1, -1}
    assert {case["end"] for case in cases} == {"global", "local", "saddle"}
    assert len(cases) > 300


_SLOPE = "expm1(zeta)/(sqrt({}) + (p + q)*exp(zeta)/(p*q) - (p + q)*(2*p*q - p - q)/(2*p*q*(p - 1)*(q - 1)))"

# The mutants that say the same as the statement: a sign inside an even power, or 1/σ² for σ² with σ = ±1.
EQUIVALENT = {
    ("binary-chain", "slope_at_zero"): ["p*q*(p + q - 1)/(-p - q)**2"],
    ("canonical-gap", "gap_simplex"): [
        "e**2*(S**2 + 2*S*sigma_e*sigma_w*w**2 + 2*S*sigma_w*w**2 - S - 4*sigma_e*sigma_w*w**2)/(1 - S)**2"
    ],
    ("canonical-critical-sets", "hessian_on_optimum"): [
        "4*A**2*e**2*phi_2*(-c*sigma_w*w**2 - 1)**2", "4*A**2*c**2*e**4*phi_2*w**2/sigma_w**2"
    ],
    ("canonical-limits", "gap_rate"): [
        "-phi_1*(4*A**2*c**2*e**4*sigma_w**2*w**2 + 4*A**2*e**2*(-c*sigma_w*w**2 - 1)**2)",
        "-phi_1*(4*A**2*c**2*e**4*w**2/sigma_w**2 + 4*A**2*e**2*(c*sigma_w*w**2 + 1)**2)",
    ],
    ("attention-invariant", "rise"): ["1/(pi*(-rho*airyai(z) + airyaiprime(z))**2)"],
    ("canonical-speeds", "rate_global"): ["4*A**2*e**2*phi_2*(c**2*e**2*w**2 + (-c*sigma_w*w**2 - 1)**2)"],
    ("untied", "gap_simplex"): [
        "c_h*e*(S**2 + 2*S*sigma_e*sigma_w*w**2 + 2*S*sigma_w*w**2 - S - 4*sigma_e*sigma_w*w**2)/(1 - S)**2"
    ],
    ("untied", "hessian_on_optimum"): [
        "A**2*c_h**2*phi_2*(-c*sigma_w*w**2 - 1)**2", "A**2*c_h*e*phi_2*(-c*sigma_w*w**2 - 1)**2",
        "A**2*e**2*phi_2*(-c*sigma_w*w**2 - 1)**2", "4*A**2*c**2*c_h**2*e**2*phi_2*w**2/sigma_w**2",
    ],
    ("canonical-times", "slope_binary"): [_SLOPE.format(root) for root in (
        "(-p - q)**2*exp(zeta)/(p**2*q**2*(p - 1)*(q - 1)) + (p - q)**2*(p + q)**2/(4*p**2*q**2*(p - 1)**2*(q - 1)**2)",
        "(p + q)**2*exp(zeta)/(p**2*q**2*(p - 1)*(q - 1)) + (p - q)**2*(p + q)**2/(4*p**2*q**2*(1 - p)**2*(q - 1)**2)",
        "(p + q)**2*exp(zeta)/(p**2*q**2*(p - 1)*(q - 1)) + (p - q)**2*(p + q)**2/(4*p**2*q**2*(1 - q)**2*(p - 1)**2)",
        "(-p - q)**2*(p - q)**2/(4*p**2*q**2*(p - 1)**2*(q - 1)**2) + (p + q)**2*exp(zeta)/(p**2*q**2*(p - 1)*(q - 1))",
        "(-p + q)**2*(p + q)**2/(4*p**2*q**2*(p - 1)**2*(q - 1)**2) + (p + q)**2*exp(zeta)/(p**2*q**2*(p - 1)*(q - 1))",
    )],
    ("exact-reduction", "gradient"): [
        "K*O*V*c_h*rho_1*rho_2*y_2*(-y_1 + y_2)**2*(H*w_1*w_2 + 1)/sqrt(d)",
        "O*Q*V*c_h*rho_1*rho_2*y_2*(-y_1 + y_2)**2*(H*w_1*w_2 + 1)/sqrt(d)",
    ],
    ("exact-reduction", "balance_rates"): ["K*O*Q*V*c_h*rho_1*rho_2*y_2*(-y_1 + y_2)**2*(H*w_1*w_2 + 1)/sqrt(d)"],
    ("symmetric-closure", "gap"): ["e**2*(2*S**2 + S*sigma_x*w_1*w_2 + S*w_1*w_2 - 2*S - 2*sigma_x*w_1*w_2)/(2*(1 - S)**2)"],
    ("symmetric-closure", "gradient"): [
        "e*phi_1*(2*S**2 + S*sigma_x*w_1*w_2 + S*w_1*w_2 - 2*S - 2*sigma_x*w_1*w_2)/(S*(1 - S)**2)",
        "e**2*phi_1*w_2*(S*sigma_x + S - 2*sigma_x)/(2*sqrt(S)*(1 - S)**2)",
        "e**2*phi_1*w_1*(S*sigma_x + S - 2*sigma_x)/(2*sqrt(S)*(1 - S)**2)",
    ],
    ("symmetric-closure", "balance"): ["e**2*phi_1*w_1*w_2*(S*sigma_x + S - 2*sigma_x)/(2*(1 - S)**2)"],
    ("symmetric-stability", "next_to_ansatz"): ["m*phi_1*sigma_x*sqrt(S - 2)/(S*(1 - S)**2)"],
    ("symmetric-stability", "second_layer_on_optimum"): [
        "-e**4*p*w_1**2*(p - 1)/(1 - S)**2",
        "e**4*p*w_1**2/(S*(1 - S)**2)",
    ],
    ("symmetric-attention", "variance"): [
        "(S - 2)*(2*S*lambda_2*lambda_2**n*n - S*lambda_2*lambda_2**n + S*lambda_2 - S*lambda_2**(2*n) - 2*S*lambda_2**n*n + S*lambda_2**n - lambda_2**2*n - 6*lambda_2*lambda_2**n*n + 5*lambda_2*lambda_2**n - 5*lambda_2 + 2*lambda_2**(2*n) + 6*lambda_2**n*n - lambda_2**n + n - 1)/(n**2*(1 - lambda_2)**2*(S - 1)**2)",
        "(S - 2)*(2*S*lambda_2*lambda_2**n*n - S*lambda_2*lambda_2**n + S*lambda_2 - S*lambda_2**(2*n) - 2*S*lambda_2**n*n + S*lambda_2**n - lambda_2**2*n - 6*lambda_2*lambda_2**n*n + 5*lambda_2*lambda_2**n - 5*lambda_2 + 2*lambda_2**(2*n) + 6*lambda_2**n*n - lambda_2**n + n - 1)/(n**2*(1 - S)**2*(lambda_2 - 1)**2)",
    ],
    ("symmetric-attention", "constant"): ["-(S - 2)*(S*p - 2*S + 2)/(S*p*(1 - S)**2)"],
    ("symmetric-attention", "jump"): ["4*e**4*sigma_e*sigma_w*w**2*(S - 2)/(1 - S)**2"],
}


@pytest.mark.parametrize("name", list(derive.CHAPTERS))
def test_no_sign_can_be_wrong_unnoticed(chapters, name):
    """Each sign of each statement is flipped in turn: the independent check fails, or the mutant is equivalent.

    The equivalent ones are listed above, and SymPy shows that they are.
    """
    tried = 0
    for step in chapters[name].steps:
        survivors = []
        for mutant in sign_mutants(step.result):
            tried += 1
            if step.check.passes(mutant):
                assert equivalent(mutant, step.result), f"{name}: {step.name} also passes as {mutant}"
                entries = zip(entries_of(mutant), entries_of(step.result))
                survivors += [str(changed) for changed, stated in entries if changed != stated]
        assert survivors == EQUIVALENT.get((name, step.name), [])
    assert tried >= 20


def test_a_wrong_residual_is_noticed(chapters):
    from dataclasses import replace

    step = chapters["binary-chain"].steps[0]
    assert step.holds and not replace(step, residual=step.result).holds


def test_no_output_holds_derivatives_of_absolute_values(chapters):
    for path in (ROOT / "derivations").iterdir():
        text = path.read_text(encoding="utf-8")
        assert not any(word in text for word in ("Derivative", "Subs(", "DiracDelta", "zoo"))


def test_json_is_strict_and_names_every_step(chapters):
    def refuse(constant):
        raise ValueError(constant)

    for name, chapter in chapters.items():
        data = json.loads((ROOT / "derivations" / f"{name}.json").read_text(encoding="utf-8"), parse_constant=refuse)
        assert [step["name"] for step in data["steps"]] == [step.name for step in chapter.steps]
        assert all(step["holds"] for step in data["steps"])


def fingerprint(chapters):
    """Digest of every kernel and of every result, in LaTeX and as SymPy writes it."""
    text = repr(sorted(derive.kernel_files(chapters).items()))
    text += "".join(render.tex(step.result) + str(step.result) for chapter in chapters.values() for step in chapter.steps)
    return hashlib.sha256(text.encode()).hexdigest()


def test_the_text_does_not_depend_on_the_hash_seed(chapters, run_python):
    """This process has a seed of its own, drawn at random unless the environment fixes it."""
    other = "import sys; sys.path.insert(0, 'tests'); import test_derivations as tests; print(tests.fingerprint(tests.derive.derive_all()))"
    assert run_python("-c", other, PYTHONHASHSEED=1).stdout.strip() == fingerprint(chapters)


@pytest.mark.slow
def test_every_written_file_is_the_same_under_any_hash_seed(run_python, tmp_path):
    digests = set()
    for seed in (0, 1, 2, 3, "random"):
        run_python("-m", "landscape.derive", "--out", tmp_path / str(seed), PYTHONHASHSEED=seed)
        files = sorted(path for path in (tmp_path / str(seed)).rglob("*") if path.is_file())
        digests.add(hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest())
    assert len(digests) == 1


def test_check_names_the_file_that_would_change(chapters, tmp_path):
    files = derive.kernel_files(chapters)
    assert derive.differing(ROOT, files) == []
    name = "landscape/kernels/canonical.py"
    changed = tmp_path / name
    changed.parent.mkdir(parents=True)
    changed.write_text(files[name].replace("+ 1.0", "- 1.0"))
    assert derive.differing(tmp_path, {name: files[name]}) == [name]


def test_list_and_only(run_python, tmp_path):
    listed = run_python("-m", "landscape.derive", "--list").stdout.split()
    assert listed == list(derive.CHAPTERS)
    done = run_python("-m", "landscape.derive", "--only", "symmetric-chain", "--json", "--out", tmp_path)
    data = json.loads(done.stdout)
    assert data["failed"] == [] and [chapter["name"] for chapter in data["chapters"]] == ["symmetric-chain"]
    assert sorted(path.name for path in (tmp_path / "derivations").iterdir()) == [
        "symmetric-chain.json", "symmetric-chain.md", "symmetric-chain.tex"
    ]
    refused = run_python("-m", "landscape.derive", "--only", "nothing", check=False)
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1 and "--only" in refused.stderr
