# The network of the staging account.

resource "cloud_vpc" "staging" {
  cidr_block = "10.84.0.0/16"
  tags       = { owner = "platform", cost_center = "CC-3120" }
}

# Private: nothing in here has an address of its own on the internet.
resource "cloud_subnet" "workers" {
  count      = 3
  vpc_id     = cloud_vpc.staging.id
  cidr_block = cidrsubnet(cloud_vpc.staging.cidr_block, 4, count.index)
}

# One gateway only: a second would cost more than an hour of staging being offline.
resource "cloud_nat_gateway" "egress" {
  subnet_id     = cloud_subnet.workers[0].id
  allocation_id = "eip-0f3b77c2"
}

resource "cloud_security_group_rule" "database_in" {
  type        = "ingress"
  from_port   = 5432
  to_port     = 5432
  protocol    = "tcp"
  # The reporting tool connects from the head office, by VPN.
  cidr_blocks = ["10.84.0.0/16", "172.19.6.0/24"]
}
