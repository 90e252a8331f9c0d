"""One function per operation: typed values in and out. The rules of the contract live here; nothing prints."""
