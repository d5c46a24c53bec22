"""What stores are made of: framing and Examples, manifest and index, plan and journal, shards."""
