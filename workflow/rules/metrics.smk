rule metrics:
    input:
        code=f"{STUDY}/plan/code/rules/metrics.json",
        units=f"{STUDY}/plan/units.parquet",
        matrix=f"{STUDY}/evaluation/{{method}}/{{unit}}/matrix.parquet",
        references=lambda wildcards: [
            f"{STUDY}/evaluation/{run}/matrix.parquet" for run in grid.references(wildcards).values()
        ],
    output:
        f"{STUDY}/metrics/{{method}}/{{unit}}.parquet",
    log:
        f"{STUDY}/telemetry/logs/metrics/{{method}}/{{unit}}.log",
    params:
        study=STUDY,
        schedule=lambda wildcards: grid.schedule(wildcards.method),
        protocols=json.dumps(grid.protocols),
        references=lambda wildcards: " ".join(
            f"--{name.replace('_', '-')} {run}" for name, run in grid.references(wildcards).items()
        ),
    shell:
        "palimpsest stage metrics --study {params.study} --code plan/code/rules/metrics.json"
        " --run {wildcards.method}/{wildcards.unit} --schedule {params.schedule} --protocols {params.protocols:q}"
        " {params.references} > {log} 2>&1"
