/** Tokens of an outside issuer (protocol §4). */
export { keysUrlIn, metadataUrlOf } from "./discovery.ts"
export { isJwt, Issuer } from "./issuer.ts"
export { keySetIn } from "./key-source.ts"
