/** The operations of signing a browser in and out (protocol §7). */
import { signInForm } from "../../formats/html/index.ts"
import { attributes, buttonRequestBody, dateTime, emptyResponse, formRequestBody, formSchema, list,
  object, oneOf, rootElement, seeOtherResponse, text, uri,
  viewResponse } from "../../formats/openapi/index.ts"
import type { ResourceDefinition } from "../../resource.ts"
import { deleteBrowserSession, deleteBrowserSessions, getBrowserSession, getBrowserSessions,
  getSignIn, getSignOut, postBrowserSession, postBrowserSessions, postSignIn,
  postSignOut } from "./sign-in-handlers.ts"

const browserSession = attributes({
  href: uri,
  id: text,
  created: dateTime,
  used: dateTime,
  expires: dateTime,
  from: text,
  agent: text,
  token: text,
  current: text
})

const deletion = formSchema({ method: oneOf("delete") }, ["method"])

const removeByForm = {
  summary: "Signs browsers out, for a page's form with `method=delete`",
  needs: "role",
  scopes: ["admin"],
  body: formRequestBody(deletion),
  responses: { 303: seeOtherResponse }
} as const

export const signInResource: ResourceDefinition = {
  tag: "sign-in",
  about: "Signing a browser in and out: a form and a cookie. Programs need neither.",
  isGuarded: true,
  schemas: {
    SignIn: rootElement("sign-in", attributes({ account: text })),
    SignOut: rootElement("sign-out", attributes({ account: text })),
    BrowserSession: rootElement("browser-session", browserSession, ["href", "id"]),
    BrowserSessions: rootElement("browser-sessions", {
      ...attributes({ href: uri }),
      "browser-session": list(object(browserSession, ["href", "id"]))
    }, ["href", "browser-session"])
  },
  operations: {
    "GET /sign-in": {
      handle: getSignIn,
      id: "getSignIn",
      summary: "Shows the form that signs a browser in, and who is signed in",
      unlinkedQuery: ["return"],
      query: {
        return: { description: "The path to which the browser returns.", schema: text }
      },
      responses: { 200: viewResponse("SignIn", "Who is signed in") }
    },
    "POST /sign-in": {
      handle: postSignIn,
      isPassing: true,
      isUnkeyed: true,
      form: (_call, fields) => signInForm(fields.get("return")),
      id: "signIn",
      summary: "Signs a browser in with an account's name and token",
      body: formRequestBody(
        formSchema({ account: text, token: text, return: text }, ["account", "token"])
      ),
      problems: ["unauthenticated"],
      responses: {
        303: emptyResponse("Redirects the browser to the path in `return`", [
          "Location",
          "Cache-Control",
          "Set-Cookie"
        ])
      }
    },
    "GET /sign-out": {
      handle: getSignOut,
      id: "getSignOut",
      summary: "Shows the button that signs the browser out",
      responses: { 200: viewResponse("SignOut", "Who is signed in") }
    },
    "POST /sign-out": {
      handle: postSignOut,
      isPassing: true,
      isUnkeyed: true,
      id: "signOut",
      summary: "Signs the browser out",
      body: buttonRequestBody,
      responses: {
        303: emptyResponse("Redirects the browser", [
          "Location",
          "Cache-Control",
          "Clear-Site-Data",
          "Set-Cookie"
        ])
      }
    },
    "GET /accounts/{account}/browser-sessions": {
      handle: getBrowserSessions,
      id: "listBrowserSessions",
      summary: "Lists the browsers that are signed in to an account",
      needs: "role",
      scopes: ["admin"],
      responses: { 200: viewResponse("BrowserSessions", "All browsers") }
    },
    "DELETE /accounts/{account}/browser-sessions": {
      handle: deleteBrowserSessions,
      id: "deleteBrowserSessions",
      summary: "Signs out all browsers of an account",
      needs: "role",
      scopes: ["admin"],
      isUnconditional: true,
      responses: { 204: emptyResponse("No browser is signed in") }
    },
    "POST /accounts/{account}/browser-sessions": {
      ...removeByForm,
      handle: postBrowserSessions,
      id: "deleteBrowserSessionsByForm"
    },
    "GET /accounts/{account}/browser-sessions/{browserSession}": {
      handle: getBrowserSession,
      id: "getBrowserSession",
      summary: "Reads the session of one browser",
      needs: "role",
      scopes: ["admin"],
      responses: { 200: viewResponse("BrowserSession", "The session, without its secret") }
    },
    "DELETE /accounts/{account}/browser-sessions/{browserSession}": {
      handle: deleteBrowserSession,
      id: "deleteBrowserSession",
      summary: "Signs one browser out",
      needs: "role",
      scopes: ["admin"],
      isUnconditional: true,
      responses: { 204: emptyResponse("The browser is signed out") }
    },
    "POST /accounts/{account}/browser-sessions/{browserSession}": {
      ...removeByForm,
      handle: postBrowserSession,
      id: "deleteBrowserSessionByForm"
    }
  }
}
