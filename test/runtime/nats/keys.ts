/** The key of the nodes in these tests. */
import { hmacAuthenticator } from "../../../runtime/nats/transport/envelope-authenticator.ts"

export const testKey = Buffer.alloc(32, "envelopes")

export const testAuthenticator = hmacAuthenticator([testKey])

/** The headers with which a client that is no node sends a message. */
export const signed = (
  subject: string,
  text: string,
  { atMs = Date.now(), by = testAuthenticator } = {}
) => ({
  "Restante-Auth": `${atMs} ${by.sign(`ask\n${subject}\n\n${atMs}\n\n\n\n\n`, Buffer.from(text))}`
})
