/** The key of stored secrets: its file, the agreement of a cluster on it, and the service's key. */
export { announceKeys, disagreementWithCluster } from "./announced-keys.ts"
export { existingKeyringOf, keyFileOf, keyringIn, keyringOf, keyringOfNode, keyTextOf, newKeyringOf,
  SecretKeyUnusable } from "./key-file.ts"
export { assertKeyOfStore, isServiceKey, serviceKeyOf, serviceKeyPlace } from "./service-key.ts"
