/** Blobs in the embedded store: small ones in the database, large ones in files. */
export { arrivingPath, blobsPath, fileNames, idOfName } from "./blob-files.ts"
export { type BlobRecord, makeBlobs, parseBlob } from "./blobs.ts"
