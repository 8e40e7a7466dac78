/** Requests to a service: attempts, credentials, problems, documents. */
export { Conflict, ConnectionError, Forbidden, Gone, InvalidSignature, NotFound, PreconditionFailed,
  type Problem, ProblemError, RestanteError, type SignatureFault, TooLarge, TooManyRequests,
  Unauthenticated, Unavailable, UnexpectedAnswer, UnknownCursor, Unprocessable } from "./errors.ts"
export { defined, type Json, type JsonObject, listOf, numberOf, objectOf, optionalNumber,
  optionalObject, optionalText, textOf, unexpected, wordOf } from "./json.ts"
export { createdOf, type CursorListingOptions, linkOf, type ListingOptions, locationOf, pathOf,
  withQuery } from "./pages.ts"
export { anySignal, backoffMs, basicAuthorization, type DocumentResponse, type Fetch, HttpTransport,
  newIdempotencyKey, pause, type PostOptions, readBytes, RemoteResource, type RequestContentBody,
  type ServiceRequest, type ServiceResponse, type WriteCondition } from "./transport.ts"
export { xmlToJson } from "./xml.ts"
