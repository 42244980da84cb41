"""From the metrics of single runs to the tables of the study."""
