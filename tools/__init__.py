"""What makes and checks this repository; not part of the product."""
