/** The key of stored secrets: its file, the agreement of a cluster on it, and the service's key. */
export { announceKeys } from "./announced-keys.ts"
export { keyringOf, keyringOfNode, SecretKeyUnusable } from "./key-file.ts"
export { assertKeyOfStore, serviceKeyOf } from "./service-key.ts"
