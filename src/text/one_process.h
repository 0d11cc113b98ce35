#pragma once

namespace headlab {

/// LibTorch and SentencePiece in one process. libc10 and libsentencepiece each define a global FLAGS_minloglevel, an
/// int and an object of 32 bytes. The loader gives both of them the one that comes first; where that is the int,
/// SentencePiece starts by writing over what lies behind it in libc10, among it a mutex that every run of TorchScript
/// locks: it never returns. A program that calls this function has a FLAGS_minloglevel of its own with room for both,
/// which comes before all libraries. (LibTorch then takes the first bytes of SentencePiece's object for its level of
/// logging.)
void share_flags();

}  // namespace headlab
