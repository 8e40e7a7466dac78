/** The catalog of problems (protocol §0): status, title, and what the client can do. */

/** A problem type; its URI is `/problems/<slug>`. */
export interface ProblemType {
  readonly status: number
  readonly title: string
  readonly explanation: string
  /** The explanation on the page of an occurrence, where the other has words of the protocol. */
  readonly forPeople?: string
}

const type = (
  status: number,
  title: string,
  explanation: string,
  forPeople?: string
): ProblemType => ({
  status,
  title,
  explanation,
  ...forPeople === undefined ? {} : { forPeople }
})

/** The problems by their slugs. Slugs never change: they are part of URIs. */
export const problemTypes = {
  malformed: type(
    400,
    "The request is malformed",
    "The syntax of the request, of a query parameter or of the document in it is wrong. The detail "
      + "says where. Correct it before sending it again."
  ),
  "unknown-cursor": type(
    400,
    "The position is not known here",
    "The cursor is of another resource, or it is older than a restore of the store from a backup. "
      + "Nothing can continue from it. Read from the start; the link `first` leads there. Then "
      + "continue from the new answer, which may repeat what you have."
  ),
  unauthenticated: type(
    401,
    "Authentication is needed",
    "Send an account's name and token by HTTP Basic, or its token as Bearer; for one message, its "
      + "password in Message-Password or by HTTP Basic."
  ),
  forbidden: type(
    403,
    "Not allowed",
    "Your account may not do this, or a page of another site sent the request. Use an account that "
      + "has the role or the right for it, and a page of this service."
  ),
  "insufficient-scope": type(
    403,
    "The token is not for this",
    "The token has some of its account's rights, and not the one for this request. The detail "
      + "names the missing scope. Use another token of the account, or create one with this scope."
  ),
  blocked: type(
    403,
    "Blocked",
    "The owner of the mailbox or the operator of the service takes nothing from this account, this "
      + "network, or with this sender or content. The detail says which, who has decided it and "
      + "until when. Do not send it again before."
  ),
  "not-found": type(
    404,
    "Nothing is here",
    "Nothing here. The address, or the secret part of it, is wrong."
  ),
  "method-not-allowed": type(
    405,
    "The method is not allowed here",
    "The resource exists, but does not answer this method, or no resource does. Use one of those "
      + "in the Allow field."
  ),
  "not-acceptable": type(
    406,
    "No acceptable representation",
    "The resource has no representation of a type in the Accept field. The answer lists the types "
      + "that it has. Accept one of them."
  ),
  "request-timeout": type(
    408,
    "The request took too long to arrive",
    "The body did not arrive in time, and nothing was done. Send the request again, over a faster "
      + "connection if there is one."
  ),
  conflict: type(
    409,
    "In conflict with the resource's state",
    "The resource is not in a state that allows this, the name is taken, a request with the same "
      + "Idempotency-Key is still running, or its answer has secrets for another token. The detail "
      + "says which. Read the resource before you send another request. After Retry-After, if "
      + "there is one, repeat this request."
  ),
  gone: type(
    410,
    "Deleted",
    "The resource of this URI was deleted and will not come back. Do not request it again.",
    "What was here has been removed, and does not come back. You may delete your link to it."
  ),
  "precondition-failed": type(
    412,
    "A precondition failed",
    "The resource is not in the state that If-Match, If-None-Match or If-Unmodified-Since asks "
      + "for. Read it again before you change it."
  ),
  "document-too-large": type(
    413,
    "The document is too large",
    "A document may have 256 KiB, unless the operator has set another limit. Publish what is "
      + "larger as content, and send its URI."
  ),
  "payload-too-large": type(
    413,
    "The content is too large",
    "The content is larger than this service stores as one resource. Send less, or divide it."
  ),
  "unsupported-media-type": type(
    415,
    "The body's type is not accepted here",
    "Send XML, JSON or, where there is an HTML form, a form; in UTF-8 and without Content-Encoding."
  ),
  "range-not-satisfiable": type(
    416,
    "The range lies outside the content",
    "Content-Range gives the length of the content. Request a range within it."
  ),
  "expectation-failed": type(
    417,
    "The expectation cannot be met",
    "The Expect field asks for something that the service does not know. Send 100-continue, or no "
      + "Expect field."
  ),
  unprocessable: type(
    422,
    "A rule of the document is broken",
    "The document is well-formed, but what it says cannot be accepted. The detail names the rule. "
      + "Correct the document before you send it again."
  ),
  "idempotency-key-reuse": type(
    422,
    "The Idempotency-Key was used for another request",
    "A key stands for one request and its body for 24 hours. Choose a new key for a new request."
  ),
  "too-many-requests": type(
    429,
    "Too many requests",
    "Wait for as long as Retry-After says, then try again.",
    "Too many requests, or wrong passwords, came from you or from others in your network. Nothing "
      + "was done."
  ),
  "header-fields-too-large": type(
    431,
    "The header fields are too large",
    "The request line and header fields together may have 16 KiB. Send fewer or shorter ones."
  ),
  internal: type(
    500,
    "Something went wrong here",
    "The fault is in the service, which has logged it. A change may have been stored nevertheless: "
      + "repeat it with the same Idempotency-Key, or read the resource before you repeat it."
  ),
  "not-implemented": type(
    501,
    "Not implemented",
    "The service does not know the transfer coding of the request. Use none other than chunked."
  ),
  overloaded: type(
    503,
    "Too busy",
    "Nothing was done. Try again after Retry-After seconds.",
    "The service is too busy at the moment. Nothing was done."
  ),
  quarantined: type(
    503,
    "The resource is out of service for now",
    "It failed several times in a row and is in quarantine. Its operator can see it. Try again "
      + "after Retry-After seconds.",
    "It failed several times in a row, and the service leaves it alone for a while. The operator "
      + "of the service can see it."
  ),
  "issuer-unavailable": type(
    503,
    "The token cannot be checked now",
    "The keys of the token's issuer are not available, so its tokens are not accepted. Try "
      + "again after Retry-After seconds."
  ),
  "storage-unavailable": type(
    503,
    "The store does not answer",
    "The store did not answer in time. A change may have been stored nevertheless: repeat it with "
      + "the same Idempotency-Key, or read the resource before you repeat it."
  ),
  "disk-low": type(
    507,
    "The disk is nearly full",
    "Until the operator has freed space, the service stores nothing for requests without an "
      + "account; it still answers them what it has. Use an account, or try again later."
  ),
  "quota-exceeded": type(
    507,
    "A quota is used up",
    "The content of the account, of all clients without an account, or of your network today (with "
      + "its sessions, queries and keys) would take more than it may; or the unread notifications "
      + "of such clients in a mailbox would. Nothing was stored. The detail says which, and "
      + "what to do."
  ),
  "storage-full": type(
    507,
    "The store is full",
    "The service can store nothing until the operator has freed space. Reading still works, in a "
      + "cluster only for a while. Try again later."
  )
} as const satisfies Readonly<Record<string, ProblemType>>

export type ProblemSlug = keyof typeof problemTypes

/** Whether a path segment is the slug of a problem type. */
export const isProblemSlug = (slug: string): slug is ProblemSlug =>
  Object.hasOwn(problemTypes, slug)
