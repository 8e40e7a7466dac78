/** Tokens of an external issuer (protocol §4). */
export { metadataUrl, parseKeysUrl } from "./discovery.ts"
export { isJwt, Issuer } from "./issuer.ts"
export { parseKeySet } from "./key-source.ts"
