/** Receiving pushes: signatures, what is wrong with one, challenges, documents. */
export { diagnoseSignature, type SignatureCheck, type SignatureDiagnosis } from "./diagnosis.ts"
export { type Push, type PushReceiver, pushReceiver, readPush, verifyHubPush,
  verifyPush } from "./pushes.ts"
export { readHeaderText, readRequestText, type RequestText } from "./request-text.ts"
export { type Incoming, type IncomingHeaders, type Verification, verifyHubSignature,
  verifySignature } from "./signatures.ts"
