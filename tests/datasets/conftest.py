"""The servers that `dataset sync` is tested against."""

from tests.servers import s3, site, sshd

__all__ = ["s3", "site", "sshd"]
