"""What is known of torch and its frameworks, as data: measured, or by hand with its source."""
