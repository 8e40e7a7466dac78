/** Signing a browser in and out, and the list of an account's browsers (protocol §7). */
export { signInResource } from "./sign-in-resource.ts"
