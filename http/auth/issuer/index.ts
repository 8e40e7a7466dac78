/** Tokens of an external issuer (protocol §4). */
export { isJwt, Issuer } from "./issuer.ts"
export { metadataUrl, parseKeySet, parseKeysUrl } from "./key-source.ts"
