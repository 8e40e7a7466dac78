/** The catalog of problems (protocol §0): status, title, and what the client can do. */
/** A problem type; its URI is `/problems/<slug>`. */
export interface ProblemType {
  readonly status: number
  readonly title: string
  readonly explanation: string
}

const type = (status: number, title: string, explanation: string): ProblemType => ({
  status,
  title,
  explanation
})

/** The problems by their slugs. Slugs never change: they are part of URIs. */
export const problemTypes = {
  malformed: type(
    400,
    "The request is malformed",
    "The syntax of the request, of a query parameter or of the document in it is wrong. The detail "
      + "says where. Correct it before sending it again."
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
    "Your account is known, but it may not do this."
  ),
  "not-found": type(
    404,
    "Nothing is here",
    "Nothing here. The address, or the secret part of it, is wrong."
  ),
  "method-not-allowed": type(
    405,
    "The method is not allowed here",
    "The resource exists, but does not answer this method. The Allow field lists those it does."
  ),
  "not-acceptable": type(
    406,
    "No acceptable representation",
    "The resource has no representation of a type in the Accept field. The answer lists the types "
      + "that it has."
  ),
  "request-timeout": type(
    408,
    "The request took too long to arrive",
    "The body did not arrive in time. Send it again, faster."
  ),
  conflict: type(
    409,
    "In conflict with the resource's state",
    "The resource is not in a state that allows this, the name is taken, or a request with the "
      + "same Idempotency-Key is still under way. Read the resource, then decide."
  ),
  gone: type(
    410,
    "Deleted",
    "The resource of this URI was deleted and will not come back."
  ),
  "precondition-failed": type(
    412,
    "A precondition failed",
    "The resource is not in the state that If-Match, If-None-Match or If-Unmodified-Since asks "
      + "for. Read it again."
  ),
  "document-too-large": type(
    413,
    "The document is too large",
    "It is larger than documents may be here: 256 KiB, unless the operator says otherwise. " +
      "Publish large things as content and send their URI."
  ),
  "payload-too-large": type(
    413,
    "The content is too large",
    "The content exceeds what this service stores as one resource."
  ),
  "unsupported-media-type": type(
    415,
    "The body's type is not accepted here",
    "Send XML, JSON or, where there is an HTML form, a form; in UTF-8 and without Content-Encoding."
  ),
  "range-not-satisfiable": type(
    416,
    "The range lies outside the content",
    "Content-Range gives the length of the content."
  ),
  unprocessable: type(
    422,
    "A rule of the document is broken",
    "The document is well-formed, but what it says cannot be accepted. The detail names the rule."
  ),
  "idempotency-key-reuse": type(
    422,
    "The Idempotency-Key was used for another request",
    "A key stands for one request and its body for 24 hours. Choose a new key for a new request."
  ),
  "too-many-requests": type(
    429,
    "Too many requests",
    "Wait for as long as Retry-After says, then try again."
  ),
  "header-fields-too-large": type(
    431,
    "The header fields are too large",
    "The request line and header fields together are limited to 16 KiB."
  ),
  internal: type(
    500,
    "Something went wrong here",
    "It is the service's fault and has been logged. Repeating the request is safe where the "
      + "protocol says so."
  ),
  "not-implemented": type(
    501,
    "Not implemented",
    "The request uses a method or transfer coding that this service does not know."
  ),
  overloaded: type(
    503,
    "Too busy",
    "Nothing was done. Try again after Retry-After seconds."
  ),
  quarantined: type(
    503,
    "The resource is out of service for now",
    "It failed several times in a row and is in quarantine. Its operator can see it. Try again "
      + "after Retry-After seconds."
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
  "storage-full": type(
    507,
    "The store is full",
    "There is no room to accept anything until the operator has made some. " +
      "Reading works, though in a cluster not for long."
  )
} as const satisfies Readonly<Record<string, ProblemType>>

export type ProblemSlug = keyof typeof problemTypes

/** Whether a path segment is the slug of a problem type. */
export const isProblemSlug = (slug: string): slug is ProblemSlug =>
  Object.hasOwn(problemTypes, slug)
