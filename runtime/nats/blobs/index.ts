/** Blobs as chunks in a JetStream key-value bucket. */
export { natsBlobs } from "./blobs.ts"
