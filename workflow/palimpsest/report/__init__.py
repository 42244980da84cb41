"""What a study found, as one page, figures and tables that show where their numbers come from."""
