"""Signatures of Standard Webhooks 1.0.0, "Signature scheme": symmetric, `v1`.

Its library for Python signs with one secret and checks no length; a rotation needs several signatures.
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from typing import Final

from pydantic import SecretStr

SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - the mark of a secret, and none
SHORTEST_BYTES: Final = 24
LONGEST_BYTES: Final = 64
NEW_BYTES: Final = 32


def new_secret() -> SecretStr:
    """A secret that nobody knows yet."""
    return SecretStr(SECRET_PREFIX + base64.b64encode(secrets.token_bytes(NEW_BYTES)).decode())


class Signer:
    """Signs with every secret: while one is rotated, receivers know the old one or the new one."""

    def __init__(self, given: SecretStr) -> None:
        """`given`: one or several, `whsec_` and base64 of 24 to 64 bytes, separated by commas or spaces.

        Raises ValueError, which quotes none of them.
        """
        words = re.split(r"[\s,]+", given.get_secret_value().strip())
        self._keys = tuple(_key(word) for word in words if word)
        if not self._keys:
            raise ValueError("there is no secret to sign with")

    def signature(self, message_id: str, timestamp: int, body: bytes) -> str:
        """The header `webhook-signature`. `timestamp`: seconds since 1970."""
        signed = f"{message_id}.{timestamp}.".encode() + body
        digests = (hmac.new(key, signed, hashlib.sha256).digest() for key in self._keys)
        return " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests)


def _key(secret: str) -> bytes:
    if not secret.startswith(SECRET_PREFIX):
        raise ValueError("each secret begins with whsec_")
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error:
        raise ValueError("what follows whsec_ is base64") from None
    if not SHORTEST_BYTES <= len(key) <= LONGEST_BYTES:
        raise ValueError(f"a secret has {SHORTEST_BYTES} to {LONGEST_BYTES} bytes")
    return key
