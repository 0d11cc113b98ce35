"""What an editor's validator says of specs: validate.py SCHEMA SPEC... prints {"spec": first complaint or null} as JSON."""
import json
import sys

import jsonschema

schema = json.load(open(sys.argv[1]))
validator = jsonschema.validators.validator_for(schema)
validator.check_schema(schema)
said = {}
for path in sys.argv[2:]:
    error = jsonschema.exceptions.best_match(validator(schema).iter_errors(json.load(open(path))))
    said[path] = None if error is None else f"{'.'.join(map(str, error.absolute_path))}: {error.message}"
print(json.dumps(said))
