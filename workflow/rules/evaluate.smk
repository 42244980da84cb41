rule evaluate:
    input:
        code=f"{STUDY}/plan/code/evaluate/{{method}}.json",
        samples=f"{STUDY}/data/samples.parquet",
        inputs=f"{STUDY}/data/inputs.npy",
        stages=lambda wildcards: [
            f"{STUDY}/runs/{wildcards.method}/{wildcards.unit}/stage-{stage}.json"
            for stage in grid.run(wildcards).stage_numbers
        ],
    output:
        f"{STUDY}/evaluation/{{method}}/{{unit}}/predictions.parquet",
        f"{STUDY}/evaluation/{{method}}/{{unit}}/matrix.parquet",
    log:
        f"{STUDY}/telemetry/logs/evaluate/{{method}}/{{unit}}.log",
    threads: study.numerics.threads
    params:
        study=STUDY,
        spec=grid.spec,
    shell:
        "palimpsest stage evaluate --study {params.study} --code plan/code/evaluate/{wildcards.method}.json"
        " --run {wildcards.method}/{wildcards.unit} --spec {params.spec:q} > {log} 2>&1"
