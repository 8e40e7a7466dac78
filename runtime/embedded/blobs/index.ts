/** Blobs in the embedded store: small ones in the database, large ones in files. */
export { blobsPath, fileNames, idOfName, uploadsPath } from "./blob-files.ts"
export { type BlobRecord, makeBlobs, parseBlob } from "./blobs.ts"
