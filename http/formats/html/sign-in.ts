/** Signing in from any page: the form, and the part of the header. */
import { type HtmlForm, renderButton } from "./forms.ts"
import { icon } from "./icon.ts"
import { attribute, type Html, html } from "./template.ts"

export const signInPath = "/sign-in"

export const signOutPath = "/sign-out"

/** Who reads a page, and to which path of this service the browser returns after a sign-in. */
export interface PageReader {
  /** The account whose browser is signed in. */
  readonly account: string | undefined
  readonly returnPath: string | undefined
}

/** The link to the form that signs in and returns. */
export const signInHref = (returnPath: string | undefined): string =>
  returnPath === undefined ? signInPath : `${signInPath}?return=${encodeURIComponent(returnPath)}`

/** The form that signs in; a password manager knows its fields. */
export const signInForm = (returnPath: string | undefined, legend = "Your account"): HtmlForm => ({
  id: "sign-in",
  action: signInPath,
  legend,
  controls: [
    { name: "account", label: "Account", required: true, autocomplete: "username", width: "half" },
    {
      name: "token",
      label: "Token",
      type: "password",
      required: true,
      autocomplete: "current-password",
      width: "half",
      hint: "One of the account's tokens, such as rst_…"
    },
    ...returnPath === undefined
      ? []
      : [{ name: "return", label: "", type: "hidden", value: returnPath } as const]
  ],
  submit: "Sign in"
})

/** The part of a page's header that says who is signed in. */
export const renderReader = (reader: PageReader | undefined, path: string | undefined): Html => {
  const account = reader?.account
  if (account !== undefined) {
    const own = html`<a href="/accounts/${account}" title="Your account">${account}</a>`
    return html`<div class="reader">${own}${
      renderButton(signOutPath, "Sign out", account, { icon: "sign-out" })
    }</div>`
  }
  return html`<div class="reader"><a href="${signInHref(reader?.returnPath)}" rel="nofollow"${
    attribute("aria-current", path === signInPath && "page")
  }>${icon("sign-in")}Sign in</a></div>`
}
