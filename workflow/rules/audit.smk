rule ledger:
    input:
        code=f"{STUDY}/plan/code/rules/ledger.json",
        runs=f"{STUDY}/plan/runs.parquet",
        outcomes=lambda wildcards: [
            f"{STUDY}/runs/{wildcards.method}/{unit}/outcome.parquet" for unit in grid.units(wildcards.method)
        ],
        metrics=lambda wildcards: [
            f"{STUDY}/metrics/{wildcards.method}/{unit}.parquet" for unit in grid.units(wildcards.method)
        ],
    output:
        f"{STUDY}/audit/ledger/{{method}}.parquet",
    log:
        f"{STUDY}/telemetry/logs/ledger/{{method}}.log",
    params:
        study=study.study,
    shell:
        "palimpsest stage ledger --study results/{params.study} --code plan/code/rules/ledger.json"
        " --method {wildcards.method} > {log} 2>&1"


rule audit:
    input:
        code=f"{STUDY}/plan/code/rules/audit.json",
        ledger=[f"{STUDY}/audit/ledger/{method}.parquet" for method in grid.methods],
        manifest=[f"{STUDY}/data/manifest/{table}.parquet" for table in ("classes", "duplicates", "tiers")],
        lock=f"{STUDY}/plan/lock.json",
        runs=f"{STUDY}/plan/runs.parquet",
        statistics=[f"{STUDY}/statistics/{table}.parquet" for table in ("comparisons", "orders", "decisions")],
        programs=[f"{STUDY}/plan/code/rules/{rule}.json" for rule in ("plan", "report")],
    output:
        f"{STUDY}/audit/ledger/_study.parquet",
        f"{STUDY}/audit/root.json",
    log:
        f"{STUDY}/telemetry/logs/audit.log",
    params:
        study=study.study,
        methods=json.dumps(grid.methods),
    shell:
        "palimpsest stage audit --study results/{params.study} --code plan/code/rules/audit.json"
        " --methods {params.methods:q} > {log} 2>&1"
