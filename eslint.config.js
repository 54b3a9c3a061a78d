import js from "@eslint/js";
import globals from "globals";

// Rules beyond the recommended ones.
const rules = {
  eqeqeq: "error",
  "no-shadow": "error",
  "no-var": "error",
  "prefer-const": "error",
  // What `app/es_modules.py` cannot turn into a function; it refuses other forms of import and export itself.
  "no-restricted-syntax": [
    "error",
    {
      selector: "AwaitExpression:not(:function AwaitExpression)",
      message: "No await outside of a function.",
    },
  ],
};

export default [
  { ignores: ["app/vendor/", ".tools/", ".venv/", "docs/_build/"] },
  js.configs.recommended,
  { linterOptions: { reportUnusedDisableDirectives: "error" }, rules },
  {
    files: ["app/assets/**/*.js", "app/standalone/**/*.js"],
    languageOptions: { globals: globals.browser, sourceType: "module" },
  },
  {
    // What computes touches no page and asks nothing of a network.
    files: ["app/assets/core/**/*.js"],
    languageOptions: { globals: { ...off(globals.browser), URLSearchParams: "readonly" } },
  },
  {
    files: ["app/site/assets/*.js"],
    languageOptions: {
      globals: { ...globals.browser, ...globals.serviceworker, SITE: "readonly" },
      sourceType: "script",
    },
  },
  {
    files: ["app/site/assets/worker.mjs"],
    languageOptions: { globals: globals.worker },
  },
  { files: ["tests/js/**/*.js", "eslint.config.js"], languageOptions: { globals: globals.nodeBuiltin } },
  {
    // Node.js runs these as they are: they are no part of a joined script.
    files: ["app/site/assets/compile.mjs", "tests/site/*.mjs"],
    languageOptions: { globals: globals.nodeBuiltin },
    rules: { "no-restricted-syntax": "off" },
  },
];

function off(names) {
  return Object.fromEntries(Object.keys(names).map((name) => [name, "off"]));
}
