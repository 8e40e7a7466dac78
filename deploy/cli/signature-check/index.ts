/** The command that says what is wrong with the signature of a push. */
export { checkSignature } from "./check-signature.ts"
