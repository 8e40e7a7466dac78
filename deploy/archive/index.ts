/** Archives: their format, and how a store is read and written as one. */
export { archiveOf } from "./archive-export.ts"
export { decoderOf, FileThere, save, verify } from "./archive-file.ts"
export { Encoder, Header, Trailer } from "./archive-format.ts"
export { type ArchivePart, type BlobPart, Counter, type Counts, differences,
  rowsOf } from "./archive-parts.ts"
export { ArchiveDamaged, trailerOf } from "./archive-reader.ts"
export { type ArchiveSource, blobOf, drain, partsOf } from "./store-reader.ts"
export { fill } from "./store-writer.ts"
